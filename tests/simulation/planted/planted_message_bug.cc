#include "tests/simulation/planted/planted_message_bug.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace loopfleet::simulation {
namespace {

using coordinator::Core;
using coordinator::Effect;
using coordinator::Effects;
using coordinator::Event;
using coordinator::Limits;

// ---- templates of bugs --------------------------------------------------------------------------

class LimitsBug final : public PlantedBug {
 public:
  explicit LimitsBug(void (*change)(Limits&)) : change_(change) {}
  void OnLimits(Limits& limits) override { change_(limits); }

 private:
  void (*change_)(Limits&);
};

// Changes every event of one kind.
template <class Kind>
class EventBug final : public PlantedBug {
 public:
  using Change = void (*)(Kind&, const Core&);
  explicit EventBug(Change change) : change_(change) {}
  void OnEvents(std::vector<Event>& events, const Core& core) override {
    for (Event& event : events) {
      if (auto* kind = std::get_if<Kind>(&event)) change_(*kind, core);
    }
  }

 private:
  Change change_;
};

// Changes every message of one kind from workers.
template <class Kind>
class HeardBug final : public PlantedBug {
 public:
  using Change = void (*)(Kind&, coordinator::PeerId&, const Core&);
  explicit HeardBug(Change change) : change_(change) {}
  void OnEvents(std::vector<Event>& events, const Core& core) override {
    for (Event& event : events) {
      auto* said = std::get_if<coordinator::WorkerSaid>(&event);
      if (said == nullptr) continue;
      if (auto* kind = std::get_if<Kind>(&said->message)) change_(*kind, said->peer, core);
    }
  }

 private:
  Change change_;
};

// Changes every effect of one kind; `change` returns whether to keep it.
template <class Kind>
class EffectBug final : public PlantedBug {
 public:
  using Change = bool (*)(Kind&);
  explicit EffectBug(Change change) : change_(change) {}
  void OnEffects(Effects& effects, const Core&) override {
    std::erase_if(effects, [&](Effect& effect) {
      auto* kind = std::get_if<Kind>(&effect);
      return kind != nullptr && !change_(*kind);
    });
  }

 private:
  Change change_;
};

template <class Bug, class Change>
std::function<std::unique_ptr<PlantedBug>()> Make(Change change) {
  return [change] { return std::make_unique<Bug>(change); };
}
template <class Bug>
std::function<std::unique_ptr<PlantedBug>()> Make() {
  return [] { return std::make_unique<Bug>(); };
}

const coordinator::Worker* WorkerAt(const Core& core, const coordinator::PeerId& peer) {
  for (const auto& [id, worker] : core.state().workers.all()) {
    if (worker.peer == peer) return &worker;
  }
  return nullptr;
}

// ---- bugs that need a class of their own --------------------------------------------------------

class AcceptsBeforeDurable final : public PlantedBug {
  void OnEvents(std::vector<Event>& events, const Core&) override {
    submission_.reset();
    for (const Event& event : events) {
      if (const auto* submission = std::get_if<coordinator::Submission>(&event)) {
        submission_ = *submission;
      }
    }
  }
  void OnEffects(Effects& effects, const Core&) override {
    if (!submission_) return;
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const auto* persist = std::get_if<coordinator::Persist>(&effects[i]);
      if (persist == nullptr) continue;
      const auto* accepted = std::get_if<storage::JobsAccepted>(&persist->writes.front());
      if (accepted == nullptr || accepted->request_id != submission_->request_id) continue;
      effects.push_back(coordinator::ReplyToClient{
          .peer = submission_->peer,
          .number = submission_->number,
          .message =
              wire::Accepted{.batch = accepted->batch,
                             .first_index = accepted->first_index,
                             .job_count = static_cast<std::uint32_t>(accepted->jobs.size())}});
      return;
    }
  }
  std::optional<coordinator::Submission> submission_;
};

// A report of an earlier attempt passes for one of the worker that holds the job now.
void AcceptLate(wire::Reports& reports, coordinator::PeerId& peer, const Core& core) {
  for (wire::Report& report : reports.reports) {
    if (core.state().leases.Find(report.lease) != nullptr) continue;
    const coordinator::Job* job = core.state().jobs.Find(report.job);
    if (job == nullptr) continue;
    const auto* leased = std::get_if<coordinator::Leased>(&job->progress);
    if (leased == nullptr) continue;
    const auto* lease = core.state().leases.Find(leased->lease);
    const auto* holder = core.state().workers.Find(lease->worker);
    if (!holder->peer) continue;
    report.lease = leased->lease;
    peer = *holder->peer;
  }
}

void Believe(wire::Reports& reports, coordinator::PeerId& peer, const Core& core) {
  const coordinator::Worker* worker = WorkerAt(core, peer);
  if (worker == nullptr) return;
  for (wire::Report& report : reports.reports) {
    auto* measurement = std::get_if<Measurement>(&report.evaluation.verdict);
    const coordinator::Job* job = core.state().jobs.Find(report.job);
    if (measurement == nullptr || job == nullptr) continue;
    const double ns = std::max(1.0, measurement->elapsed_ns);
    *measurement = {.elapsed_ns = ns,
                    .elapsed_low_ns = ns,
                    .elapsed_high_ns = ns,
                    .elapsed_min_ns = ns,
                    .elapsed_mean_ns = ns,
                    .samples_ns = {ns},
                    .sample_flags = {0}};
    report.evaluation.subject = job->subject;
    if (job->flop_count != 0) report.evaluation.flop_count = job->flop_count;
    report.evaluation.conditions->hardware = worker->facts.hardware;
  }
}

class NeverLosesWorkers final : public PlantedBug {
  void OnEvents(std::vector<Event>& events, const Core& core) override {
    if (!std::holds_alternative<coordinator::Tick>(events.front())) return;
    for (const auto& [id, worker] : core.state().workers.all()) {
      if (!worker.peer) continue;
      wire::Heartbeat heartbeat;
      heartbeat.held.assign(worker.running.begin(), worker.running.end());
      events.insert(events.begin(), coordinator::WorkerSaid{*worker.peer, heartbeat});
    }
  }
};

// A lost worker returns its leases as if it had not started them.
class CountsNoLoss final : public PlantedBug {
  void OnMoment(coordinator::Moment& now) override { now_ = now.instant; }
  void OnEvents(std::vector<Event>& events, const Core& core) override {
    if (!std::holds_alternative<coordinator::Tick>(events.front())) return;
    for (const auto& [id, worker] : core.state().workers.all()) {
      if (!worker.peer || worker.heard_at + std::chrono::milliseconds(3000) > now_) continue;
      wire::Goodbye goodbye;
      goodbye.returned.assign(worker.running.begin(), worker.running.end());
      events.insert(events.begin(), coordinator::WorkerSaid{*worker.peer, goodbye});
    }
  }
  Instant now_{};
};

class GrantsTwice final : public PlantedBug {
  void OnEffects(Effects& effects, const Core& core) override {
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const auto* send = std::get_if<coordinator::SendToWorker>(&effects[i]);
      if (send == nullptr || !std::holds_alternative<wire::Leases>(send->command)) continue;
      wire::Leases copy = std::get<wire::Leases>(send->command);
      for (wire::Lease& lease : copy.leases) lease.lease.value |= std::uint64_t{1} << 39;
      for (const auto& [id, worker] : core.state().workers.all()) {
        if (!worker.peer || *worker.peer == send->peer) continue;
        effects.push_back(coordinator::SendToWorker{.peer = *worker.peer, .command = copy});
        return;
      }
    }
  }
};

// After a batch is cancelled, one of its unfinished jobs goes to a worker.
class GrantsCancelled final : public PlantedBug {
  void OnEffects(Effects& effects, const Core& core) override {
    for (const auto& [id, batch] : core.state().batches.all()) {
      if (!batch.cancelled || batch.cancelling) continue;
      for (std::uint32_t index = 0; index < batch.accepted; ++index) {
        const coordinator::Job* job = core.state().jobs.Find({.batch = id, .index = index});
        if (job != nullptr) return Grant(effects, core, *job);
      }
    }
  }
  void Grant(Effects& effects, const Core& core, const coordinator::Job& job) {
    for (const auto& [id, worker] : core.state().workers.all()) {
      if (!worker.peer || worker.state != wire::WorkerState::kReady) continue;
      wire::Leases leases;
      leases.leases.push_back({.lease = LeaseId{std::uint64_t{1} << 39 | ++granted_},
                               .job = job.id,
                               .attempt = 1,
                               .spec = job.spec});
      effects.push_back(
          coordinator::SendToWorker{.peer = *worker.peer, .command = std::move(leases)});
      return;
    }
  }
  std::uint64_t granted_ = 0;
};

class GoesByTheWallClock final : public PlantedBug {
  void OnMoment(coordinator::Moment& now) override {
    const Instant wall{now.wall.time_since_epoch()};
    latest_ = std::max(latest_, wall);
    now.instant = latest_;
  }
  Instant latest_{};
};

class ForgetsWaiters final : public PlantedBug {
  void OnEvents(std::vector<Event>& events, const Core&) override {
    is_persisted_ = std::holds_alternative<coordinator::Persisted>(events.front());
  }
  void OnEffects(Effects& effects, const Core&) override {
    if (!is_persisted_) return;
    std::erase_if(effects, [](const Effect& effect) {
      return std::holds_alternative<coordinator::SendOutcomes>(effect);
    });
  }
  bool is_persisted_ = false;
};

bool IsFinish(const storage::Write& write) {
  return std::holds_alternative<storage::JobFinished>(write);
}

}  // namespace

std::vector<PlantedBugInfo> PlantedMessageBugs() {
  using coordinator::Recovered;
  using coordinator::SendOutcomes;
  using coordinator::Submission;
  return {
      {"accept_before_durable", "jobs are accepted before they are on disk",
       Make<AcceptsBeforeDurable>()},
      {"accept_late_report", "a report of an attempt that is over is accepted",
       Make<HeardBug<wire::Reports>>(&AcceptLate)},
      {"believe_anything", "reports are not checked", Make<HeardBug<wire::Reports>>(&Believe)},
      {"never_lose_workers", "a worker that is gone is not noticed", Make<NeverLosesWorkers>()},
      {"count_no_loss", "leases of lost workers are not counted as attempts", Make<CountsNoLoss>()},
      {"grant_twice", "two workers get the same job", Make<GrantsTwice>()},
      {"grant_cancelled", "a job of a cancelled batch that is not ended yet is given to a worker",
       Make<GrantsCancelled>()},
      {"grant_to_draining", "a worker that drains gets more",
       Make<HeardBug<wire::Heartbeat>>(
           +[](wire::Heartbeat& heartbeat, coordinator::PeerId&, const Core&) {
             heartbeat.drain = wire::DrainState::kServing;
           })},
      {"ignore_credit", "a worker gets twice what it takes",
       Make<HeardBug<wire::WorkerHello>>(+[](wire::WorkerHello& hello, coordinator::PeerId&,
                                             const Core&) { hello.credit *= 2; })},
      {"loose_bound", "twice as many unfinished jobs as allowed",
       Make<LimitsBug>(+[](Limits& limits) { limits.max_unfinished_jobs *= 2; })},
      {"end_all_at_once", "a cancelled batch is ended by one event, however large it is",
       Make<LimitsBug>(+[](Limits& limits) { limits.max_endings_per_event = 1'000'000; })},
      {"leave_batches_open", "a batch that its client left open is never closed",
       Make<LimitsBug>(+[](Limits& limits) { limits.open_batch_idle = std::chrono::hours(24); })},
      {"ignore_conflicts", "a request id with other content is answered as before",
       Make<EventBug<Submission>>(+[](Submission& submission, const Core&) {
         if (submission.seen) submission.digest = submission.seen->request_digest;
       })},
      {"skip_an_outcome", "a page starts one too late",
       Make<EffectBug<SendOutcomes>>(+[](SendOutcomes& send) {
         if (send.fetch.after_sequence > 0) ++send.fetch.after_sequence;
         return true;
       })},
      {"keep_the_epoch", "a restarted coordinator gives the same lease ids out again",
       Make<EventBug<Recovered>>(+[](Recovered& recovered, const Core&) { recovered.epoch = 1; })},
      {"recover_all_but_one", "one unfinished job is forgotten in a restart",
       Make<EventBug<Recovered>>(+[](Recovered& recovered, const Core&) {
         if (!recovered.jobs.empty()) recovered.jobs.pop_back();
       })},
      {"lose_a_cancellation", "that a batch is cancelled is not written",
       Make<EffectBug<coordinator::Persist>>(+[](coordinator::Persist& persist) {
         std::erase_if(persist.writes, [](const storage::Write& write) {
           return std::holds_alternative<storage::BatchCancelled>(write);
         });
         return true;
       })},
      {"forget_waiters", "who waits for outcomes is not told of them", Make<ForgetsWaiters>()},
      {"swap_outcomes", "two jobs get each other's outcome",
       Make<EffectBug<coordinator::Persist>>(+[](coordinator::Persist& persist) {
         auto& writes = persist.writes;
         if (writes.size() > 1 && IsFinish(writes[0]) && IsFinish(writes[1])) {
           std::swap(std::get<storage::JobFinished>(writes[0]).outcome.evaluation,
                     std::get<storage::JobFinished>(writes[1]).outcome.evaluation);
         }
         return true;
       })},
      {"ignore_placement", "jobs for CUDA go to any worker",
       Make<EventBug<Submission>>(+[](Submission& submission, const Core&) {
         for (coordinator::ResolvedJob& job : submission.jobs) {
           if (auto* measure = std::get_if<ResolvedTask>(&job.resolution)) {
             measure->placement = Placement::kAny;
           }
         }
       })},
      {"go_by_the_wall_clock", "deadlines are kept in wall time", Make<GoesByTheWallClock>()},
  };
}

}  // namespace loopfleet::simulation
