#include "coordinator/core/dispatch/queueing.h"

#include <string>
#include <variant>

namespace loopfleet::coordinator {
namespace {

bool IsOfUse(const State& state, const Uuid& id) {
  const Worker* worker = state.workers.Find(id);
  return worker != nullptr && worker->state == wire::WorkerState::kReady;
}

// The jobs that wait with this affinity are for `worker` from now on; nil: for any.
void MoveWaiting(Turn& turn, const std::string& affinity, const Uuid& worker) {
  State& state = turn.state;
  for (const JobId id : state.affinities.WaitingWith(affinity)) {
    Job& job = state.jobs.At(id);
    auto& queued = std::get<Queued>(job.progress);
    Demand demand = DemandOf(job.spec, job.placement);
    demand.only = worker;
    state.unserved.Note(demand, !state.ready.Has(demand), turn.now.instant);
    queued.place = state.ready.Move(queued.place, demand);
  }
}

void Release(Turn& turn, const std::string& affinity) {
  MoveWaiting(turn, affinity, Uuid{});
  turn.state.affinities.Release(affinity);
}

// What the job demands in the queue.
Demand Enter(Turn& turn, const Job& job) {
  State& state = turn.state;
  Demand demand = DemandOf(job.spec, job.placement);
  const std::string& affinity = job.spec.affinity;
  if (!affinity.empty()) {
    demand.only = state.affinities.WorkerOf(affinity);
    if (!demand.only.is_nil() && !IsOfUse(state, demand.only)) {
      Release(turn, affinity);
      demand.only = {};
    }
    state.affinities.StartWaiting(affinity, job.id, state.limits.max_affinities);
  }
  state.unserved.Note(demand, !state.ready.Has(demand), turn.now.instant);
  return demand;
}

void StandInLine(Turn& turn, const Job& job) {
  if (job.sharing == Sharing::kAlone) return;
  turn.state.in_flight.Stand(QuestionOf(job), LinePlaceOf(turn.state, job), job.id);
}

// What goes with having left the queue.
void StepOut(Turn& turn, const Job& job) {
  State& state = turn.state;
  if (!job.spec.affinity.empty()) state.affinities.StopWaiting(job.spec.affinity, job.id);
  if (job.sharing == Sharing::kAlone) return;
  state.in_flight.StepOut(QuestionOf(job), LinePlaceOf(state, job), job.id);
}

// The job is out of the queue, and whether it is wanted yet.
Popped Pop(Turn& turn, JobId id) {
  Job& job = turn.state.jobs.At(id);
  job.progress = Following{};  // in no queue; the caller leases it or ends it
  StepOut(turn, job);
  if (IsCancelled(turn.state, id)) return {.job = id, .fate = Popped::Fate::kCancelled};
  const bool is_over = job.expires_at <= turn.now.instant;
  return {.job = id, .fate = is_over ? Popped::Fate::kExpired : Popped::Fate::kWanted};
}

ReadyQueue::Entering EnteringOf(const Turn& turn, const Job& job) {
  return {.job = job.id,
          .client = turn.state.batches.Find(job.id.batch)->client,
          .priority = job.spec.priority};
}

}  // namespace

bool IsCancelled(const State& state, JobId job) {
  const Batch* batch = state.batches.Find(job.batch);
  return batch != nullptr && batch->cancelled;
}

Demand DemandOf(const Job& job) { return DemandOf(job.spec, job.placement); }

void PutInQueue(Turn& turn, Job& job) {
  const Demand demand = Enter(turn, job);
  job.progress = Queued{turn.state.ready.PushBack(EnteringOf(turn, job), demand)};
  StandInLine(turn, job);
}

void PutInFront(Turn& turn, Job& job) {
  const Demand demand = Enter(turn, job);
  job.progress = Queued{turn.state.ready.PushFront(EnteringOf(turn, job), demand)};
  StandInLine(turn, job);
}

void LeaveQueue(Turn& turn, const Job& job) {
  turn.state.ready.Remove(std::get<Queued>(job.progress).place);
  StepOut(turn, job);
}

void LeaveRetries(Turn& turn, const Job& job) {
  State& state = turn.state;
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

void LeadFlight(Turn& turn, const Job& job) {
  for (const JobId id : turn.state.in_flight.Lead(QuestionOf(job), job.id)) {
    Job& other = turn.state.jobs.At(id);
    LeaveQueue(turn, other);
    other.progress = Following{};
  }
}

std::optional<Popped> PopFor(Turn& turn, const Worker& worker) {
  const auto next = turn.state.ready.PopFor(worker.supply());
  if (!next) return std::nullopt;
  const Popped popped = Pop(turn, *next);
  if (popped.fate == Popped::Fate::kWanted) {
    (void)BindAffinity(turn, turn.state.jobs.At(*next), worker);
  }
  return popped;
}

std::optional<Popped> PopLastFor(Turn& turn, const Worker& worker) {
  const auto is_left = [&](const Demand& demand) { return !turn.state.workers.HasReady(demand); };
  const auto next = turn.state.ready.PopFor(worker.supply(), is_left);
  return next ? std::optional(Pop(turn, *next)) : std::nullopt;
}

bool BindAffinity(Turn& turn, const Job& job, const Worker& worker) {
  State& state = turn.state;
  const std::string& affinity = job.spec.affinity;
  if (affinity.empty()) return true;
  const Uuid bound = state.affinities.WorkerOf(affinity);
  if (!bound.is_nil() && bound != worker.id()) return false;
  state.affinities.Bind(affinity, worker.id(), state.limits.max_affinities);
  if (bound.is_nil()) MoveWaiting(turn, affinity, worker.id());
  return true;
}

void BindStored(Turn& turn, const std::vector<AdmittedJob>& jobs) {
  State& state = turn.state;
  for (const AdmittedJob& job : jobs) {
    const auto* stored = std::get_if<storage::StoredAnswer>(&job.admission);
    const std::string& affinity = job.spec.affinity;
    if (stored == nullptr || affinity.empty()) continue;
    if (!state.affinities.WorkerOf(affinity).is_nil()) continue;
    const Worker* worker = state.workers.FindReady((*stored)->worker);
    if (worker == nullptr) continue;
    state.affinities.Bind(affinity, worker->id(), state.limits.max_affinities);
    MoveWaiting(turn, affinity, worker->id());
  }
}

void ReleaseAffinities(Turn& turn) {
  State& state = turn.state;
  for (const Uuid& worker : state.affinities.Workers()) {
    if (IsOfUse(state, worker)) continue;
    for (const std::string& affinity : state.affinities.BoundTo(worker)) Release(turn, affinity);
  }
}

}  // namespace loopfleet::coordinator
