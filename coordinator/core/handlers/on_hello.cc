#include "coordinator/core/handlers/on_hello.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/counted.h"
#include "common/job/plausibility.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/lease_return.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/handlers/on_drain.h"
#include "coordinator/core/state/worker_reply.h"

namespace loopfleet::coordinator {
namespace {

using wire::WorkerState;

// Whether the worker may keep a job under a lease that is not in the LeaseTable. The job must have
// counted it, or be of an earlier run, like the lease, and claimed soon after the start. For that
// there is only the worker's word, so the worker must at least be one that may run the job. Its
// credit does not count: the jobs that it finished while no coordinator was there come on top of
// it.
bool MayAdopt(const Transaction& tx, const Worker& worker, const Job& job, LeaseId lease,
              bool is_counted) {
  const State& state = tx.state;
  const bool may_be_earlier =
      job.is_recovered && !state.leases.IsOfThisRun(lease) && tx.now.instant < state.reattach_until;
  if (!is_counted && !may_be_earlier) return false;
  const bool has_failed_it = std::ranges::find(job.failed_attempts, worker.id(),
                                               &FailedAttempt::worker) != job.failed_attempts.end();
  const bool is_for_others =
      StateOf(worker) == WorkerState::kQuarantined && state.workers.HasReady(DemandOf(job));
  return !is_for_others && !has_failed_it && Serves(worker.supply(), DemandOf(job));
}

// Whether a job that another worker holds should rather continue on this one. Either that one got
// it after the restart, and this one has worked on it for longer. Or both had it before, and this
// one got it later, when the other lease had ended: ids ascend.
bool IsAheadOfItsHolder(const Transaction& tx, const Worker& worker, const Job& job,
                        LeaseId lease) {
  const State& state = tx.state;
  const LeaseRecord& holder = *state.leases.Find(std::get<Leased>(job.progress).lease);
  return tx.now.instant < state.reattach_until && !state.leases.IsOfThisRun(lease) &&
         (state.leases.IsOfThisRun(holder.id) || holder.id < lease) &&
         holder.worker != worker.id() && job.failed_attempts.empty();
}

// Takes the job from the worker that holds it. If that worker cannot be told to drop it, its
// progress is unknown and the lease still counts. The caller decides what happens to the job.
void TakeFromHolder(Transaction& tx, Job& job) {
  const LeaseId lease = std::get<Leased>(job.progress).lease;
  const Worker& holder = *tx.state.workers.Find(tx.state.leases.Find(lease)->worker);
  EndLease(tx, lease);
  if (!holder.peer) return;
  std::erase(job.counted, lease);
  Send(tx, *holder.peer, wire::Revoke{.leases = {lease}});
}

// Enters a lease that the worker reports and the LeaseTable does not have. False if the job is
// finished, another worker holds it for good, or the lease's result has been received. A lease of
// an earlier run now counts as an attempt.
bool Adopt(Transaction& tx, Worker& worker, const wire::HeldLease& held) {
  State& state = tx.state;
  if (!state.leases.WasGranted(held.lease)) return false;
  Job* job = state.jobs.Find(held.job);
  if (job == nullptr || IsCancelled(state, held.job)) return false;
  const bool is_elsewhere = std::holds_alternative<Leased>(job->progress);
  if (is_elsewhere && !IsAheadOfItsHolder(tx, worker, *job, held.lease)) return false;
  const bool is_counted = std::ranges::find(job->counted, held.lease) != job->counted.end();
  if (!is_counted && job->attempts() >= state.limits.max_attempts) return false;
  if (!MayAdopt(tx, worker, *job, held.lease, is_counted)) return false;
  if (!BindAffinity(tx, *job, worker)) return false;  // its affinity is bound elsewhere by now
  if (is_elsewhere) TakeFromHolder(tx, *job);
  if (std::holds_alternative<Queued>(job->progress)) LeaveQueue(tx, *job);
  if (std::holds_alternative<Retrying>(job->progress)) LeaveRetries(tx, *job);
  if (std::holds_alternative<Following>(job->progress)) {
    state.single_flight.Leave(QuestionOf(*job), job->id);  // it runs by itself now
    job->sharing = Sharing::kAlone;
  }
  if (job->sharing == Sharing::kShares) LeadFlight(tx, *job);
  LeaseRecord& lease = state.leases.Adopt(held.lease, held.job, worker.id(), tx.now.instant);
  lease.was_held = true;
  state.workers.AddRunning(worker, held.lease);
  job->progress = Leased{held.lease};
  if (!is_counted) {
    job->counted.push_back(held.lease);
  }
  return true;
}

// Makes both sides' leases agree: what the worker lost goes back to the queue; what only the worker
// knows is adopted or revoked. `missing`: the leases that it has lost unless it holds them.
void Reconcile(Transaction& tx, Worker& worker, std::vector<wire::HeldLease> held,
               std::set<LeaseId> missing) {
  // A worker may hold two leases of a job: one that it has given back, and a later one, which it
  // keeps.
  std::ranges::sort(held, std::greater<>(), &wire::HeldLease::lease);
  wire::Revoke revoke;
  for (const wire::HeldLease& lease : held) {
    LeaseRecord* known = tx.state.leases.Find(lease.lease);
    if (known != nullptr && known->worker == worker.id() && known->job == lease.job) {
      known->was_held = true;
      missing.erase(lease.lease);
    } else if (known != nullptr || !Adopt(tx, worker, lease)) {
      revoke.leases.push_back(lease.lease);
    }
  }
  ReturnMissing(tx, missing);
  if (!revoke.leases.empty()) Send(tx, *worker.peer, std::move(revoke));
}

std::size_t WorkersWith(const State& state, const KeyText& key) {
  return static_cast<std::size_t>(std::ranges::count_if(
      state.workers.all(), [&](const auto& entry) { return entry.second.key == key; }));
}

// Whether the key has workers of so many other kinds that this worker's kind exceeds the limit.
bool IsOneKindTooMany(const State& state, const wire::WorkerHello& hello, const KeyText& key) {
  const WorkerKind kind = KindOf(hello);
  std::vector<WorkerKind> others;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.key != key || worker.state == WorkerState::kLost || id == hello.worker) continue;
    if (IsOfKind(worker.facts, kind)) return false;
    const auto is_its_kind = [&](const WorkerKind& other) { return IsOfKind(worker.facts, other); };
    if (std::ranges::none_of(others, is_its_kind)) others.push_back(KindOf(worker.facts));
  }
  return others.size() >= state.limits.max_kinds_per_key;
}

// Whether there is room for the clock of another class. Forgets classes of departed workers that no
// outcome depends on, if room is needed.
bool HasRoomForClass(State& state) {
  auto& clocks = state.reference_clocks;
  const std::size_t most = state.limits.max_hardware_classes;
  if (clocks.size() < most) return true;
  std::set<std::string_view> present;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state != wire::WorkerState::kLost) {
      present.insert(worker.facts.hardware.hardware_class);
    }
  }
  std::erase_if(clocks, [&](const auto& clock) {
    return !clock.second.has_outcomes && !present.contains(clock.first);
  });
  return clocks.size() < most;
}

// Why the worker may not come; nullopt: it may. Forgets lost workers where that makes room for it.
std::optional<Failure> WhyNotWelcome(State& state, const wire::WorkerHello& hello,
                                     const KeyText& key) {
  const Limits& limits = state.limits;
  const bool is_new = state.workers.Find(hello.worker) == nullptr;
  if (hello.version.major != wire::kProtocolVersion.major) {
    return Failure{
        .code = FailureCode::kVersionMismatch,
        .message = fmt::format("the worker speaks protocol {}.{}, the coordinator {}.{}",
                               hello.version.major, hello.version.minor,
                               wire::kProtocolVersion.major, wire::kProtocolVersion.minor)};
  }
  if (!IsPlausibleClock(hello.hardware.clock_mhz)) {
    return Failure{.code = FailureCode::kMalformed,
                   .message = fmt::format("the worker states a clock of {} MHz; 0, or {} to {}",
                                          hello.hardware.clock_mhz, kLeastClockMhz, kMostClockMhz)};
  }
  if (!key.empty() && IsOneKindTooMany(state, hello, key)) {
    return Failure{.code = FailureCode::kQuotaExceeded,
                   .message = fmt::format("workers of {} kinds (hardware class, compiler, policy) "
                                          "are registered with this key already (the limit)",
                                          limits.max_kinds_per_key)};
  }
  const auto is_full = [&] { return state.workers.size() >= limits.max_workers; };
  const auto is_key_full = [&] {
    return !key.empty() && WorkersWith(state, key) >= limits.max_workers_per_key;
  };
  if (is_new && is_key_full()) state.workers.ForgetOneLost(&key);
  if (is_new && is_full()) state.workers.ForgetOneLost();
  if (is_new && is_full()) {
    return Failure{.code = FailureCode::kBusy,
                   .message = fmt::format("{} registered already",
                                          Counted(limits.max_workers, "worker is", "workers are"))};
  }
  if (is_new && is_key_full()) {
    return Failure{
        .code = FailureCode::kBusy,
        .message = fmt::format("{} registered with this key already",
                               Counted(limits.max_workers_per_key, "worker is", "workers are"))};
  }
  return std::nullopt;
}

void RefuseWorker(Transaction& tx, const PeerId& peer, const std::string& name, Failure failure) {
  tx.effects.push_back(Observation{RequestWasRefused{failure.code}});
  tx.effects.push_back(Observation{WorkerChanged{WorkerChange::kRefused, name, 0}});
  const bool may_come_later = failure.code != FailureCode::kVersionMismatch;
  Send(tx, peer,
       wire::Refused{.failure = std::move(failure),
                     .retry_after_ms = may_come_later ? tx.limits().retry_after_ms : 0});
}

// Workers of one class are comparable only at one reference clock; each measured its own. It keeps
// its own if there is no room for another class.
void StateAtReferenceClock(State& state, HardwareFacts& hardware) {
  if (hardware.clock_mhz == 0) return;
  auto& clocks = state.reference_clocks;
  if (!clocks.contains(hardware.hardware_class) && !HasRoomForClass(state)) return;
  const KnownClock measured{.mhz = hardware.clock_mhz};
  const double reference = clocks.try_emplace(hardware.hardware_class, measured).first->second.mhz;
  // Its arithmetic peak scales with the clock, and its times are stated at this one.
  const bool is_stated_at_it = hardware.device == DeviceKind::kCpu;
  if (is_stated_at_it) hardware.peaks.flop_per_second *= reference / hardware.clock_mhz;
  hardware.clock_mhz = reference;
}

wire::WorkerWelcome WelcomeOf(const State& state, const Worker& worker) {
  return {
      .epoch = state.epoch,
      .heartbeat_ms = static_cast<std::uint32_t>(state.limits.heartbeat.count()),
      .capabilities = {std::string(wire::kCodeLookupCapability), std::string(wire::kBlobCapability),
                       std::string(wire::kPutBlobCapability)},
      .reference_mhz = worker.facts.hardware.clock_mhz};
}

}  // namespace

void OnHello(Transaction& tx, const PeerId& peer, wire::WorkerHello hello, const KeyText& key) {
  State& state = tx.state;
  if (auto why = WhyNotWelcome(state, hello, key)) {
    return RefuseWorker(tx, peer, hello.name, *std::move(why));
  }
  const std::vector<wire::HeldLease> held = std::move(hello.held);
  StateAtReferenceClock(state, hello.hardware);
  const bool is_known = state.workers.Find(hello.worker) != nullptr;
  // A hello repeated because its answer was late was sent while leases were granted upon the first
  // one. What was sent over another connection is lost with it.
  const Worker* speaker = state.workers.FindByPeer(peer);
  const bool is_repeated = speaker != nullptr && speaker->id() == hello.worker;
  Worker& worker = state.workers.Welcome(peer, std::move(hello), tx.now.instant);
  worker.key = key;
  Send(tx, peer, WelcomeOf(state, worker));
  Reconcile(tx, worker, held, is_repeated ? ArrivedBy(tx, worker) : worker.running);
  ApplyDrains(tx, worker);
  if (!is_known) state.workers.ForgetReplaced(worker);
  if (is_repeated) return;  // it has joined by the first one
  const bool reattached = is_known || !held.empty();
  Observe(tx, reattached ? WorkerChange::kReattached : WorkerChange::kJoined, worker,
          worker.running.size());
}

std::set<LeaseId> ArrivedBy(const Transaction& tx, const Worker& worker) {
  std::set<LeaseId> arrived;
  for (const LeaseId lease : worker.running) {
    const Instant granted_at = tx.state.leases.Find(lease)->granted_at;
    if (granted_at + tx.state.limits.lease_arrival <= tx.now.instant) arrived.insert(lease);
  }
  return arrived;
}

}  // namespace loopfleet::coordinator
