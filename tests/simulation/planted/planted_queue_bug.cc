#include "tests/simulation/planted/planted_queue_bug.h"

#include <algorithm>
#include <set>
#include <utility>

namespace loopfleet::simulation {
namespace {

using coordinator::Core;
using coordinator::Effects;
using coordinator::Event;
using coordinator::ReadyQueue;
using coordinator::Recovered;

// Jobs go into the queue as something that they are not. Inside the core: each is taken out and put
// in again, once, behind the core's back.
class MisfilesJobs final : public PlantedBug {
 public:
  explicit MisfilesJobs(void (*misfile)(ReadyQueue::Entering&)) : misfile_(misfile) {}

 private:
  void OnEvents(std::vector<Event>& events, const Core&) override {
    if (std::holds_alternative<Recovered>(events.front())) misfiled_.clear();
  }
  void OnEffects(Effects&, const Core& core) override {
    auto& state = const_cast<coordinator::State&>(core.state());
    std::set<JobId> found;
    state.jobs.ForEachUnordered([&](const coordinator::Job& job) {
      if (std::holds_alternative<coordinator::Queued>(job.progress)) found.insert(job.id);
    });
    for (const JobId id : found) {
      if (!misfiled_.insert(id).second) continue;
      coordinator::Job& job = state.jobs.At(id);
      ReadyQueue::Entering entering{
          .job = id, .client = state.batches.At(id.batch).client, .priority = job.spec.priority};
      misfile_(entering);
      auto& queued = std::get<coordinator::Queued>(job.progress);
      const coordinator::Demand demand = state.ready.DemandAt(queued.place);
      state.ready.Remove(queued.place);
      queued.place = state.ready.PushBack(entering, demand);
    }
  }

  void (*misfile_)(ReadyQueue::Entering&);
  std::set<JobId> misfiled_;
};

class MistakesLabels final : public PlantedBug {
  void OnEvents(std::vector<Event>& events, const Core&) override {
    for (Event& event : events) {
      auto* said = std::get_if<coordinator::WorkerSaid>(&event);
      if (said == nullptr) continue;
      if (auto* hello = std::get_if<wire::WorkerHello>(&said->message)) hello->labels = {"big"};
    }
  }
};

class ForgetsAffinities final : public PlantedBug {
  void OnLimits(coordinator::Limits& limits) override { limits.max_affinities = 0; }
};

class MistakesDriftPatience final : public PlantedBug {
 public:
  explicit MistakesDriftPatience(std::chrono::milliseconds patience) : patience_(patience) {}

 private:
  void OnLimits(coordinator::Limits& limits) override { limits.drift_patience = patience_; }
  std::chrono::milliseconds patience_;
};

class TrustsTheLent final : public PlantedBug {
  void OnEffects(Effects& effects, const Core&) override {
    for (coordinator::Effect& effect : effects) {
      auto* persist = std::get_if<coordinator::Persist>(&effect);
      if (persist == nullptr) continue;
      std::erase_if(persist->writes, [](const storage::Write& write) {
        return std::holds_alternative<storage::ResultDoubted>(write);
      });
    }
  }
};

// A restart gets it wrong when jobs were accepted.
class MistakesAcceptance final : public PlantedBug {
 public:
  explicit MistakesAcceptance(void (*mistake)(std::optional<WallTime>&)) : mistake_(mistake) {}

 private:
  void OnEvents(std::vector<Event>& events, const Core&) override {
    for (Event& event : events) {
      if (auto* recovered = std::get_if<Recovered>(&event)) Mistake(recovered->jobs);
      if (auto* more = std::get_if<coordinator::JobsRecovered>(&event)) Mistake(more->jobs);
    }
  }
  void Mistake(std::vector<Recovered::Job>& jobs) const {
    for (Recovered::Job& job : jobs) {
      if (job.accepted_at) mistake_(job.accepted_at);
    }
  }
  void (*mistake_)(std::optional<WallTime>&);
};

// Deadlines are looked at by the tick alone: a report that is earlier than that still counts.
class ReportsBeatDeadlines final : public PlantedBug {
  void OnEvents(std::vector<Event>& events, const Core&) override {
    const auto* said = std::get_if<coordinator::WorkerSaid>(&events.front());
    is_report_ = said != nullptr && std::holds_alternative<wire::Reports>(said->message);
  }
  void OnMoment(coordinator::Moment& now) override {
    if (is_report_) now.instant = std::max(last_, now.instant - std::chrono::milliseconds(200));
    last_ = now.instant;
  }
  bool is_report_ = false;
  Instant last_{};
};

// Which jobs go to a worker, a wrong one and the right one alike: the first two leases that go out
// in one turn to different workers change places.
class SwapsWorkers final : public PlantedBug {
  void OnEffects(Effects& effects, const Core&) override {
    coordinator::SendToWorker* first = nullptr;
    for (coordinator::Effect& effect : effects) {
      auto* send = std::get_if<coordinator::SendToWorker>(&effect);
      if (send == nullptr || !std::holds_alternative<wire::Leases>(send->command)) continue;
      if (first == nullptr) {
        first = send;
      } else {
        std::swap(first->command, send->command);
        return;
      }
    }
  }
};

template <class Bug, class... Arguments>
std::function<std::unique_ptr<PlantedBug>()> Make(Arguments... arguments) {
  return [arguments...] { return std::make_unique<Bug>(arguments...); };
}

}  // namespace

std::vector<PlantedBugInfo> PlantedQueueBugs() {
  return {
      {"forget_priorities", "jobs wait as if all had priority 0",
       Make<MisfilesJobs>(+[](ReadyQueue::Entering& entering) { entering.priority = 0; })},
      {"turn_priorities_round", "the lowest priority goes first",
       Make<MisfilesJobs>(
           +[](ReadyQueue::Entering& entering) { entering.priority = -entering.priority; })},
      {"forget_clients", "all jobs wait in one line, whosever they are",
       Make<MisfilesJobs>(+[](ReadyQueue::Entering& entering) { entering.client = {}; })},
      {"ignore_labels", "jobs go to workers without the labels they demand",
       Make<MistakesLabels>()},
      {"forget_affinities", "where jobs of an affinity ran is forgotten when another comes",
       Make<ForgetsAffinities>()},
      {"time_again_after_restart", "a restart gives jobs their whole time again",
       Make<MistakesAcceptance>(
           +[](std::optional<WallTime>& accepted_at) { accepted_at.reset(); })},
      {"no_time_after_restart", "a restart takes for accepted long ago what was not",
       Make<MistakesAcceptance>(
           +[](std::optional<WallTime>& accepted_at) { *accepted_at -= std::chrono::hours(1); })},
      {"reports_beat_deadlines", "a report after the deadline counts if no tick came between",
       Make<ReportsBeatDeadlines>()},
      {"wait_for_the_drifting", "jobs wait for ever for workers that drift",
       Make<MistakesDriftPatience>(std::chrono::hours(24))},
      {"lend_at_once", "workers that drift are lent jobs without delay",
       Make<MistakesDriftPatience>(std::chrono::milliseconds(0))},
      {"trust_the_lent", "what was measured in quarantine answers others later",
       Make<TrustsTheLent>()},
      {"swap_workers", "two workers get each other's jobs", Make<SwapsWorkers>()},
  };
}

}  // namespace loopfleet::simulation
