#include "tests/simulation/rules/lease_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/core/rules/placement.h"
#include "tests/simulation/message_text.h"

namespace loopfleet::simulation {
namespace {

// Whether the failure is due to the worker, its device or the moment, so that the job is retried.
bool IsTriedAgain(const Evaluation& evaluation) {
  if (evaluation.ok()) return false;
  switch (evaluation.failure().code) {
    case FailureCode::kWorkerLost:
    case FailureCode::kWorkerCrashed:
    case FailureCode::kDeviceFault:
    case FailureCode::kUnstableTiming:
    case FailureCode::kRunCrash: return true;  // a crash only if another worker can run it
    default: return false;
  }
}

}  // namespace

void LeaseRules::Started() {
  doubts_.Started();
  granted_in_life_.clear();
  had_in_life_.clear();
  arrived_in_life_.clear();
  denied_in_life_.clear();
  workers_.clear();
  worker_at_.clear();
}

void LeaseRules::Ended() {
  for (auto& [id, lease] : leases_) lease.standing = Standing::kEnded;
}

const LeaseRules::ReportView* LeaseRules::ReportOf(const Evaluation& evaluation) const {
  const auto found = reports_.find(FingerprintOf(evaluation));
  return found == reports_.end() ? nullptr : &found->second;
}

LeaseRules::Life LeaseRules::LifeOf(JobId job) const {
  const auto arrived = arrived_in_life_.find(job);
  const auto granted = granted_in_life_.find(job);
  return {.arrived = arrived == arrived_in_life_.end() ? 0 : arrived->second.size(),
          .granted = granted == granted_in_life_.end() ? 0 : granted->second};
}

bool LeaseRules::IsSilent(Instant now, const Uuid& worker) {
  return now - workers_[worker].heard > Patience();
}

bool LeaseRules::TakesJobs(const Uuid& worker) {
  return !workers_[worker].is_draining && !doubts_.MayBeInQuarantine(worker);
}

void LeaseRules::Doubt(LeaseId id) {
  const auto lease = leases_.find(id);
  if (lease != leases_.end() && lease->second.standing == Standing::kHeld) {
    lease->second.standing = Standing::kDoubtful;
  }
}

void LeaseRules::Deny(LeaseId id) {
  const LeaseView& lease = leases_.at(id);
  if (lease.standing == Standing::kHeld) denied_in_life_[lease.job].insert(id);
  Doubt(id);
}

void LeaseRules::Unrun(LeaseId id) {
  const auto lease = leases_.find(id);
  if (lease == leases_.end()) return;
  had_in_life_[lease->second.job].erase(id);
  std::uint32_t& granted = granted_in_life_[lease->second.job];
  if (granted > 0) --granted;
}

void LeaseRules::HeardHolding(const Uuid& worker, LeaseId id) {
  const auto lease = leases_.find(id);
  if (lease == leases_.end() || lease->second.worker != worker) return;
  lease->second.was_held = true;
  arrived_in_life_[lease->second.job].insert(id);
  if (lease->second.standing != Standing::kEnded) had_in_life_[lease->second.job].insert(id);
}

void LeaseRules::DoubtAllOf(const Uuid& worker) {
  for (const auto& [lease, view] : leases_) {
    if (view.worker == worker) Doubt(lease);
  }
}

// How long a worker may be silent before it is lost.
Nanos LeaseRules::Patience() const { return mix_.limits.heartbeat * mix_.limits.missed_heartbeats; }

void LeaseRules::Heard(Instant now, const PeerId& peer, const wire::WorkerMessage& message) {
  if (const auto* hello = std::get_if<wire::WorkerHello>(&message)) {
    return HeardHello(now, peer, *hello);
  }
  const auto id = worker_at_.find(peer);
  if (id == worker_at_.end()) return;  // it will be asked for a hello
  WorkerView& worker = workers_[id->second];
  // After a silence the worker may or may not be lost.
  const bool is_silent = worker.peer != peer || now - worker.heard > Patience();
  if (is_silent) DoubtAllOf(id->second);
  if (worker.peer == peer) worker.heard = now;
  if (const auto* heartbeat = std::get_if<wire::Heartbeat>(&message)) {
    worker.is_draining = heartbeat->drain == wire::DrainState::kDraining;
    if (worker.peer == peer && !is_silent) HeardCanaries(now, worker, *heartbeat);
    if (worker.is_draining || doubts_.MayBeInQuarantine(id->second)) rules_.Trouble(id->second);
    for (const auto& [lease, view] : leases_) {
      if (view.worker == id->second &&
          std::ranges::find(heartbeat->held, lease) == heartbeat->held.end()) {
        Deny(lease);
      }
    }
    if (is_silent) {  // the answer may only ask for a hello
      worker.held_if_known = heartbeat->held;
      if (worker.peer == peer) worker.said_if_known = {now, *heartbeat};
    } else {
      for (const LeaseId lease : heartbeat->held) HeardHolding(id->second, lease);
    }
  } else if (const auto* reports = std::get_if<wire::Reports>(&message)) {
    HeardReports(id->second, *reports);
  } else if (const auto* goodbye = std::get_if<wire::Goodbye>(&message)) {
    for (const LeaseId lease : goodbye->returned) Unrun(lease);
    DoubtAllOf(id->second);
    rules_.Trouble(id->second);
    doubts_.Forget(id->second);
    worker.peer.clear();
  } else if (const auto* returned = std::get_if<wire::Returned>(&message)) {
    for (const LeaseId lease : returned->leases) {
      Unrun(lease);
      Doubt(lease);
    }
  }
}

// If the worker drifts, its unreported leases are in doubt.
void LeaseRules::HeardCanaries(Instant now, const WorkerView& worker,
                               const wire::Heartbeat& heartbeat) {
  const Uuid& id = worker.facts.worker;
  doubts_.Heard(now, worker.facts, heartbeat);
  for (const auto& [lease, view] : leases_) {
    const bool is_its_own = view.worker == id && view.standing == Standing::kHeld;
    if (is_its_own && !view.is_reported) doubts_.Has(id, lease);
  }
}

void LeaseRules::HeardHello(Instant now, const PeerId& peer, const wire::WorkerHello& hello) {
  rules_.Trouble(hello.worker);
  rules_.Greeted(hello);
  for (const auto& [id, view] : leases_) {
    if (view.worker == hello.worker &&
        std::ranges::find(hello.held, id, &wire::HeldLease::lease) == hello.held.end()) {
      Deny(id);
    }
  }
  for (const wire::HeldLease& held : hello.held) {  // perhaps adopted
    const auto lease = leases_.find(held.lease);
    if (lease == leases_.end() || lease->second.worker != hello.worker) continue;
    if (lease->second.standing == Standing::kEnded) lease->second.standing = Standing::kDoubtful;
    HeardHolding(hello.worker, held.lease);
  }
  if (const auto before = worker_at_.find(peer); before != worker_at_.end()) {
    if (before->second != hello.worker) workers_[before->second].peer.clear();
  }
  worker_at_[peer] = hello.worker;
  // The coordinator forgets a worker that was lost long ago, with its canary state.
  if (now - workers_[hello.worker].heard > mix_.limits.lost_worker_shown) {
    doubts_.Forget(hello.worker);
  }
  workers_[hello.worker] = {.peer = peer, .heard = now, .facts = hello};
}

void LeaseRules::HeardReports(const Uuid& worker, const wire::Reports& reports) {
  for (const wire::Report& report : reports.reports) {
    const auto lease = leases_.find(report.lease);
    if (lease == leases_.end() || lease->second.worker != worker) continue;
    arrived_in_life_[lease->second.job].insert(report.lease);
    const auto known = reports_.find(FingerprintOf(report.evaluation));
    const bool is_known = known != reports_.end();  // false: a failure replaced the report
    if (is_known && lease->second.standing != Standing::kEnded) {
      known->second.rightful.insert(report.lease);
    }
    if (IsTriedAgain(report.evaluation) || (is_known && known->second.truth == Truth::kLie)) {
      Doubt(report.lease);
    } else {
      lease->second.is_reported = lease->second.standing == Standing::kHeld;
    }
  }
}

void LeaseRules::WillReport(const wire::Report& report, Truth truth, const std::string& worker) {
  reports_[FingerprintOf(report.evaluation)] = {.report = report, .truth = truth, .worker = worker};
}

void LeaseRules::FoundUnreachable(const PeerId& peer, const std::vector<LeaseId>& undelivered) {
  const auto id = worker_at_.find(peer);
  if (id == worker_at_.end()) return;
  for (const LeaseId lease : undelivered) Unrun(lease);
  DoubtAllOf(id->second);
  rules_.Trouble(id->second);
  if (workers_[id->second].peer == peer) workers_[id->second].peer.clear();
}

void LeaseRules::Said(Instant now, const PeerId& peer, const wire::WorkerCommand& command) {
  if (const auto* leases = std::get_if<wire::Leases>(&command)) {
    for (const wire::Lease& lease : leases->leases) Granted(now, peer, lease);
  } else if (const auto* revoke = std::get_if<wire::Revoke>(&command)) {
    for (const LeaseId lease : revoke->leases) {
      const auto view = leases_.find(lease);
      if (view == leases_.end()) continue;
      // A lease revoked from a drifting worker counts as unrun.
      if (view->second.standing != Standing::kEnded) Unrun(lease);
      view->second.standing = Standing::kEnded;
    }
  } else if (const auto* stored = std::get_if<wire::ReportsStored>(&command)) {
    Stored(*stored);
  } else if (std::holds_alternative<wire::HeartbeatAnswer>(command)) {  // it was not lost
    if (const auto id = worker_at_.find(peer); id != worker_at_.end()) {
      WorkerView& worker = workers_[id->second];
      for (const LeaseId lease : std::exchange(worker.held_if_known, {})) {
        HeardHolding(id->second, lease);
      }
      if (const auto said = std::exchange(worker.said_if_known, {})) {
        HeardCanaries(said->first, worker, said->second);
        if (doubts_.Drifts(id->second)) rules_.Trouble(id->second);
      }
    }
  } else if (std::holds_alternative<wire::HelloWanted>(command)) {  // it was lost
    if (const auto id = worker_at_.find(peer); id != worker_at_.end()) {
      workers_[id->second].held_if_known.clear();
      workers_[id->second].said_if_known.reset();
      DoubtAllOf(id->second);
      rules_.Trouble(id->second);
      if (workers_[id->second].peer == peer) workers_[id->second].peer.clear();
    }
  }
}

void LeaseRules::Granted(Instant now, const PeerId& peer, const wire::Lease& lease) {
  const auto at = worker_at_.find(peer);
  if (at == worker_at_.end()) {
    return Violate("leases go to workers that said hello", fmt::format("lease {}", lease.lease));
  }
  const WorkerView& worker = workers_[at->second];
  if (leases_.contains(lease.lease)) {
    return Violate("no lease id twice",
                   fmt::format("lease {} for job {} was given out before", lease.lease, lease.job));
  }
  if (worker.is_draining) {
    Violate("drain is respected",
            fmt::format("job {} for draining {}", lease.job, worker.facts.name));
  }
  if (orders_.drained_hosts.contains(worker.facts.hardware.host)) {
    Violate("drain is respected", fmt::format("job {} for {} on drained {}", lease.job,
                                              worker.facts.name, worker.facts.hardware.host));
  }
  if (orders_.cancelled.contains(lease.job.batch)) {
    Violate("cancelled jobs are not run", fmt::format("job {}", lease.job));
  }
  const auto stored = disk_.Find(lease.job);
  if (!stored) {
    return Violate("I1 only what is on disk is run", fmt::format("job {}", lease.job));
  }
  if (stored->outcome) {
    return Violate("I2 one outcome", fmt::format("job {} runs again after its outcome", lease.job));
  }
  if (stored->spec != lease.spec) {
    Violate("jobs are run as they were asked", fmt::format("job {}", lease.job));
  }
  const auto replayed = JobPool::Replay(stored->spec);
  const auto* measure = std::get_if<ResolvedTask>(&replayed);
  if (measure == nullptr) {
    return Violate("invalid jobs are not run", fmt::format("job {}", lease.job));
  }
  if (!coordinator::Serves(worker.facts.hardware.device, measure->placement)) {
    Violate("jobs run where they may", fmt::format("job {} on {}", lease.job, worker.facts.name));
  }
  Obey(doubts_.Granted(lease, worker.facts,
                       NameOfAnotherFor(now, at->second, stored->spec, measure->placement)),
       "quarantine is respected");
  const auto binds = doubts_.MayBeInQuarantine(at->second) ? QueueRules::Binds::kNothing
                                                           : QueueRules::Binds::kAffinity;
  Obey(rules_.Granted(now, lease, worker.facts, binds,
                      [&](const Uuid& other) { return now - workers_[other].heard > Patience(); }),
       "jobs run in their turn, where they may");
  // Leases that were not seen to arrive may exceed three, up to a limit.
  const std::uint32_t most = mix_.limits.max_attempts;
  const std::size_t had = had_in_life_[lease.job].size();
  const std::uint32_t granted = ++granted_in_life_[lease.job];
  if (had >= most || lease.attempt == 0 || lease.attempt > most ||
      granted > most + mix_.limits.max_unseen_losses + denied_in_life_[lease.job].size()) {
    Violate("I7 at most three attempts",
            fmt::format("job {}: attempt {}, {} leases, of which {} were held, since the "
                        "coordinator started",
                        lease.job, lease.attempt, granted, had));
  }
  if (lease.attempt > 1 && mix_.poison == 0 && mix_.crash == 0) {
    Surprised("a job was leased again");
  }
  for (const LeaseId other : leases_of_[lease.job]) {
    LeaseView& view = leases_[other];
    const bool is_silent = now - workers_[view.worker].heard > Patience();
    if (view.standing == Standing::kHeld && (view.is_reported || !is_silent)) {
      Violate("no job twice at once",
              fmt::format("job {}: lease {} while lease {} is {}", lease.job, lease.lease, other,
                          view.is_reported ? "reported" : "held by a worker that is heard"));
    }
    view.standing = Standing::kEnded;
  }
  // If the connection was found broken in the same turn, the lease is not delivered.
  const Standing standing = worker.peer == peer ? Standing::kHeld : Standing::kDoubtful;
  leases_[lease.lease] = {.job = lease.job, .worker = at->second, .standing = standing};
  leases_of_[lease.job].insert(lease.lease);
  const auto held = std::ranges::count_if(leases_, [&](const auto& entry) {
    return entry.second.worker == at->second && entry.second.standing == Standing::kHeld &&
           !entry.second.is_reported;
  });
  if (static_cast<std::uint32_t>(held) > worker.facts.credit) {
    Violate("I8 credit is respected", fmt::format("{} has {} leases, its credit is {}",
                                                  worker.facts.name, held, worker.facts.credit));
  }
}

void LeaseRules::Stored(const wire::ReportsStored& stored) {
  for (const LeaseId id : stored.leases) {
    const auto lease = leases_.find(id);
    if (lease == leases_.end()) continue;
    if (lease->second.standing == Standing::kHeld) {
      const auto job = disk_.Find(lease->second.job);
      if (!job || !job->outcome) {
        Violate("I1 durable before acknowledged",
                fmt::format("the report of lease {}, job {}", id, lease->second.job));
      }
    }
    if (lease->second.standing != Standing::kEnded) lease->second.standing = Standing::kDoubtful;
  }
}

// Another worker that could run the job, as far as an outsider can tell; "": none.
std::string LeaseRules::NameOfAnotherFor(Instant now, const Uuid& worker, const JobSpec& spec,
                                         Placement placement) const {
  if (mix_[Fault::kOperator] > 0) return {};  // it may be drained
  for (const auto& [id, other] : workers_) {
    if (id == worker || other.peer.empty() || other.is_draining) continue;
    if (now - other.heard > Patience() || doubts_.MayBeInQuarantine(id)) continue;
    const bool has_labels = std::ranges::all_of(spec.labels, [&](const std::string& label) {
      return std::ranges::find(other.facts.labels, label) != other.facts.labels.end();
    });
    if (has_labels && coordinator::Serves(other.facts.hardware.device, placement)) {
      return other.facts.name;
    }
  }
  return {};
}

}  // namespace loopfleet::simulation
