#include "coordinator/core/dispatch/queueing.h"

#include <string>
#include <variant>

namespace loopfleet::coordinator {
namespace {

bool IsOfUse(const State& state, const Uuid& id) {
  const Worker* worker = state.workers.Find(id);
  return worker != nullptr && worker->state == wire::WorkerState::kReady;
}

// Reserves the waiting jobs of this affinity for `worker`; nil: for any worker.
void MoveWaiting(Transaction& tx, const std::string& affinity, const Uuid& worker) {
  State& state = tx.state;
  for (const JobId id : state.affinities.WaitingWith(affinity)) {
    Job& job = state.jobs.At(id);
    auto& queued = std::get<Queued>(job.progress);
    Demand demand = DemandOf(job.spec, job.placement);
    demand.only = worker;
    state.unschedulable.Note(demand, !state.ready.Has(demand), tx.now.instant);
    queued.place = state.ready.Move(queued.place, demand);
  }
}

void Release(Transaction& tx, const std::string& affinity) {
  MoveWaiting(tx, affinity, Uuid{});
  tx.state.affinities.Release(affinity);
}

// Registers the waiting job and its affinity. Returns its demand in the queue.
Demand Enter(Transaction& tx, const Job& job) {
  State& state = tx.state;
  state.queued_since.Add(job.accepted_at);
  Demand demand = DemandOf(job.spec, job.placement);
  const std::string& affinity = job.spec.affinity;
  if (!affinity.empty()) {
    demand.only = state.affinities.WorkerOf(affinity);
    if (!demand.only.is_nil() && !IsOfUse(state, demand.only)) {
      Release(tx, affinity);
      demand.only = {};
    }
    state.affinities.StartWaiting(affinity, job.id, state.limits.max_affinities);
  }
  state.unschedulable.Note(demand, !state.ready.Has(demand), tx.now.instant);
  return demand;
}

void StandInLine(Transaction& tx, const Job& job) {
  if (job.sharing == Sharing::kAlone) return;
  tx.state.single_flight.Stand(QuestionOf(job), LinePlaceOf(tx.state, job), job.id);
}

// Undoes what goes with being queued: the affinity's waiting list and the place in line.
void StepOut(Transaction& tx, const Job& job) {
  State& state = tx.state;
  state.queued_since.Remove(job.accepted_at);
  if (!job.spec.affinity.empty()) state.affinities.StopWaiting(job.spec.affinity, job.id);
  if (job.sharing == Sharing::kAlone) return;
  state.single_flight.StepOut(QuestionOf(job), LinePlaceOf(state, job), job.id);
}

// Records that the job left the queue. Returns whether it is still wanted.
Popped Pop(Transaction& tx, JobId id) {
  Job& job = tx.state.jobs.At(id);
  job.progress = Following{};  // in no queue; the caller leases it or ends it
  StepOut(tx, job);
  if (IsCancelled(tx.state, id)) return {.job = id, .fate = Popped::Fate::kCancelled};
  const bool is_over = job.expires_at <= tx.now.instant;
  return {.job = id, .fate = is_over ? Popped::Fate::kExpired : Popped::Fate::kWanted};
}

ReadyQueue::Entering EnteringOf(const Transaction& tx, const Job& job) {
  return {.job = job.id,
          .client = tx.state.batches.Find(job.id.batch)->client,
          .priority = job.spec.priority};
}

}  // namespace

bool IsCancelled(const State& state, JobId job) {
  const Batch* batch = state.batches.Find(job.batch);
  return batch != nullptr && batch->cancelled;
}

Demand DemandOf(const Job& job) { return DemandOf(job.spec, job.placement); }

void PutInQueue(Transaction& tx, Job& job) {
  const Demand demand = Enter(tx, job);
  job.progress = Queued{tx.state.ready.PushBack(EnteringOf(tx, job), demand)};
  StandInLine(tx, job);
}

void PutInFront(Transaction& tx, Job& job) {
  const Demand demand = Enter(tx, job);
  job.progress = Queued{tx.state.ready.PushFront(EnteringOf(tx, job), demand)};
  StandInLine(tx, job);
}

void LeaveQueue(Transaction& tx, const Job& job) {
  tx.state.ready.Remove(std::get<Queued>(job.progress).place);
  StepOut(tx, job);
}

void LeaveRetries(Transaction& tx, const Job& job) {
  State& state = tx.state;
  const auto order = std::get<Retrying>(job.progress).order;
  const RetryTable::Entry entry = state.retries.entries().at(order);
  state.retries.Remove(order);
  const auto* alone = std::get_if<WaitsToBeAlone>(&entry.what);
  if (alone == nullptr) return;
  Worker* worker = state.workers.Find(alone->worker);
  if (worker != nullptr && worker->reservation && worker->reservation->job == job.id) {
    state.workers.EndReservation(*worker);
  }
}

LinePlace LinePlaceOf(const State& state, const Job& job) {
  return {.client = state.batches.Find(job.id.batch)->client,
          .below_most = kMostPriority - job.spec.priority};
}

void LeadFlight(Transaction& tx, const Job& job) {
  for (const JobId id : tx.state.single_flight.Lead(QuestionOf(job), job.id)) {
    Job& other = tx.state.jobs.At(id);
    LeaveQueue(tx, other);
    other.progress = Following{};
  }
}

std::optional<Popped> PopFor(Transaction& tx, const Worker& worker) {
  const auto next = tx.state.ready.PopFor(worker.supply());
  if (!next) return std::nullopt;
  const Popped popped = Pop(tx, *next);
  if (popped.fate == Popped::Fate::kWanted) {
    (void)BindAffinity(tx, tx.state.jobs.At(*next), worker);
  }
  return popped;
}

std::optional<Popped> PopLastFor(Transaction& tx, const Worker& worker) {
  const auto is_left = [&](const Demand& demand) { return !tx.state.workers.HasReady(demand); };
  const auto next = tx.state.ready.PopFor(worker.supply(), is_left);
  return next ? std::optional(Pop(tx, *next)) : std::nullopt;
}

bool BindAffinity(Transaction& tx, const Job& job, const Worker& worker) {
  State& state = tx.state;
  const std::string& affinity = job.spec.affinity;
  if (affinity.empty()) return true;
  const Uuid bound = state.affinities.WorkerOf(affinity);
  if (!bound.is_nil() && bound != worker.id()) return false;
  state.affinities.Bind(affinity, worker.id(), state.limits.max_affinities);
  if (bound.is_nil()) MoveWaiting(tx, affinity, worker.id());
  return true;
}

void BindStored(Transaction& tx, const std::vector<ResolvedJob>& jobs) {
  State& state = tx.state;
  for (const ResolvedJob& job : jobs) {
    const auto* stored = std::get_if<storage::StoredAnswer>(&job.resolution);
    const std::string& affinity = job.spec.affinity;
    if (stored == nullptr || affinity.empty()) continue;
    if (!state.affinities.WorkerOf(affinity).is_nil()) continue;
    const Worker* worker = state.workers.FindReady((*stored)->worker);
    if (worker == nullptr) continue;
    state.affinities.Bind(affinity, worker->id(), state.limits.max_affinities);
    MoveWaiting(tx, affinity, worker->id());
  }
}

void ReleaseAffinities(Transaction& tx) {
  State& state = tx.state;
  for (const Uuid& worker : state.affinities.Workers()) {
    if (IsOfUse(state, worker)) continue;
    for (const std::string& affinity : state.affinities.BoundTo(worker)) Release(tx, affinity);
  }
}

}  // namespace loopfleet::coordinator
