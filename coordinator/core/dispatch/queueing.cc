#include "coordinator/core/dispatch/queueing.h"

#include <string>
#include <utility>

#include "coordinator/core/dispatch/bulk_completion.h"
#include "coordinator/core/dispatch/expiry.h"

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

// The next job that `pop` takes out of the queue and that is wanted yet.
template <class Pop>
std::optional<JobId> TakeWanted(Turn& turn, const Pop& pop) {
  State& state = turn.state;
  while (true) {
    const std::optional<JobId> next = pop();
    if (!next) return std::nullopt;
    Job& job = state.jobs.At(*next);
    job.progress = Following{};  // out of the queue; the caller leases it
    StepOut(turn, job);
    if (IsCancelled(state, *next)) {
      Cancel(turn, *next);
    } else if (job.expires_at > turn.now.instant) {
      return next;
    } else {
      Expire(turn, *next);
    }
    // The next turn goes on.
    if (turn.commit.outcomes.size() >= state.limits.max_endings_per_turn) return std::nullopt;
  }
}

ReadyQueue::Entering EnteringOf(const Turn& turn, const Job& job) {
  return {.job = job.id,
          .client = turn.state.batches.Find(job.id.batch)->client,
          .priority = job.spec.priority};
}

}  // namespace

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

std::optional<JobId> TakeNextFor(Turn& turn, Worker& worker) {
  const auto next =
      TakeWanted(turn, [&] { return turn.state.ready.PopFor(worker.supply()); });
  if (next) (void)BindAffinity(turn, turn.state.jobs.At(*next), worker);
  return next;
}

std::optional<JobId> TakeLastFor(Turn& turn, const Worker& worker) {
  const auto is_left = [&](const Demand& demand) { return !turn.state.workers.HasReady(demand); };
  return TakeWanted(turn, [&] { return turn.state.ready.PopFor(worker.supply(), is_left); });
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
