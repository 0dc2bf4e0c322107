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

// Jobs enter the queue with wrong properties: each is removed and queued again once, by writing to
// the core's state.
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

class ForgetsAffinities final : public PlantedBug {
  void OnLimits(coordinator::Limits& limits) override { limits.max_affinities = 0; }
};

// The core misreads the canary state in a worker's heartbeats.
class MistakesCanaries final : public PlantedBug {
 public:
  explicit MistakesCanaries(void (*mistake)(wire::Heartbeat&)) : mistake_(mistake) {}

 private:
  void OnEvents(std::vector<Event>& events, const Core&) override {
    for (Event& event : events) {
      auto* said = std::get_if<coordinator::WorkerSaid>(&event);
      if (said == nullptr) continue;
      auto* heartbeat = std::get_if<wire::Heartbeat>(&said->message);
      if (heartbeat != nullptr && heartbeat->canary == wire::CanaryState::kDrifting) {
        mistake_(*heartbeat);
      }
    }
  }
  void (*mistake_)(wire::Heartbeat&);
};

class TrustsTheDrifting final : public PlantedBug {
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

// The core searches again what it knows: each event offers all demands to all idle workers.
class OffersAgain final : public PlantedBug {
  void OnEvents(std::vector<Event>&, const Core& core) override {
    const_cast<coordinator::State&>(core.state()).offered = {};
  }
};

// Each event looks at all workers for each job that waits for another worker.
class LooksAgain final : public PlantedBug {
  void OnEvents(std::vector<Event>&, const Core& core) override {
    auto& retries = const_cast<coordinator::State&>(core.state()).retries;
    for (const auto& [order, entry] : retries.entries()) {
      auto* waits = std::get_if<coordinator::WaitsForAnother>(&retries.At(order).what);
      if (waits != nullptr) *waits = {.until = waits->until};
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
      {"forget_clients", "all jobs wait in one line, whosever they are",
       Make<MisfilesJobs>(+[](ReadyQueue::Entering& entering) { entering.client = {}; })},
      {"forget_affinities", "where jobs of an affinity ran is forgotten when another comes",
       Make<ForgetsAffinities>()},
      {"wait_for_the_drifting", "a worker that drifts gets no job, though no other could run it",
       Make<MistakesCanaries>(
           +[](wire::Heartbeat& heartbeat) { heartbeat.drain = wire::DrainState::kDraining; })},
      {"ignore_drifts", "a worker that drifts gets jobs as any other",
       Make<MistakesCanaries>(
           +[](wire::Heartbeat& heartbeat) { heartbeat.canary = wire::CanaryState::kSteady; })},
      {"trust_the_drifting", "what was measured in quarantine answers others later",
       Make<TrustsTheDrifting>()},
      {"offer_again", "each event offers all demands to all idle workers", Make<OffersAgain>()},
      {"look_again", "each event looks at all workers for each job that waits for another",
       Make<LooksAgain>()},
  };
}

}  // namespace loopfleet::simulation
