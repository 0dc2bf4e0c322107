#include "coordinator/core/invariants.h"

#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "coordinator/core/dispatch/queueing.h"

namespace loopfleet::coordinator {
namespace {

void CheckJob(const State& state, const Job& job) {
  const Batch* batch = state.batches.Find(job.id.batch);
  LF_CHECK(batch != nullptr && job.id.index < batch->job_count, "job {} has no batch", job.id);
  LF_CHECK(!batch->cancelled || (job.id.index >= batch->cancelled_before &&
                                 std::ranges::find(state.endings.cancelled, job.id.batch) !=
                                     state.endings.cancelled.end()),
           "job {} outlived its batch's cancellation", job.id);
  LF_CHECK(job.attempts() <= state.limits.max_attempts, "job {}: attempt {}", job.id,
           job.attempts());
  if (const auto* queued = std::get_if<Queued>(&job.progress)) {
    LF_CHECK(queued->place.job() == job.id, "job {} is not at its place", job.id);
    Demand demand = DemandOf(job.spec, job.placement);
    if (!job.spec.affinity.empty()) demand.only = state.affinities.WorkerOf(job.spec.affinity);
    LF_CHECK(state.ready.DemandAt(queued->place) == demand, "job {} waits with others", job.id);
  }
  if (const auto* retrying = std::get_if<Retrying>(&job.progress)) {
    const auto entry = state.retries.entries().find(retrying->order);
    LF_CHECK(entry != state.retries.entries().end() && entry->second.job == job.id,
             "job {} is not among the retries", job.id);
  }
  LF_CHECK(job.failed_attempts.size() <= state.limits.max_attempts, "job {} failed {} times",
           job.id, job.failed_attempts.size());
  if (const auto* leased = std::get_if<Leased>(&job.progress)) {
    const LeaseRecord* lease = state.leases.Find(leased->lease);
    LF_CHECK(lease != nullptr && lease->job == job.id && lease->stage == LeaseStage::kRunning,
             "job {} is not under lease {}", job.id, leased->lease);
  }
  LF_CHECK(job.expires_at == Instant::max() || state.deadlines.Contains(job.id, job.expires_at),
           "job {} never expires", job.id);
  const bool follows = std::holds_alternative<Following>(job.progress);
  if (job.sharing == Sharing::kAlone) {
    LF_CHECK(!follows, "job {} shares nothing and follows", job.id);
    return;
  }
  const SingleFlightTable::Entry* entry = state.single_flight.Find(QuestionOf(job));
  LF_CHECK(entry != nullptr, "job {} shares and is not in flight", job.id);
  const bool leads = entry->leader == job.id;
  LF_CHECK(leads != entry->followers.contains(job.id), "job {} does not play its role in flight",
           job.id);
  LF_CHECK(!follows || !leads, "job {} leads and is not in line", job.id);
  LF_CHECK(follows || !entry->answer, "job {} has an answer and goes its own way", job.id);
  LF_CHECK(leads || !std::holds_alternative<Leased>(job.progress), "job {} is leased and follows",
           job.id);
  const auto stands = entry->line.find(LinePlaceOf(state, job));
  LF_CHECK((stands != entry->line.end() && stands->second == job.id) ==
               std::holds_alternative<Queued>(job.progress),
           "job {} is not in line as it should", job.id);
}

void CheckLease(const State& state, const LeaseRecord& lease) {
  const Job* job = state.jobs.Find(lease.job);
  if (lease.stage == LeaseStage::kReported) {
    LF_CHECK(job == nullptr, "job {} was reported and is still here", lease.job);
    return;
  }
  LF_CHECK(job != nullptr, "lease {} is for no job", lease.id);
  const auto* leased = std::get_if<Leased>(&job->progress);
  LF_CHECK(leased != nullptr && leased->lease == lease.id, "lease {} is not its job's", lease.id);
  const Worker* worker = state.workers.Find(lease.worker);
  LF_CHECK(worker != nullptr && worker->running.contains(lease.id), "lease {} is nobody's",
           lease.id);
}

// Each client's usage is the sum over its batches.
void CheckLoads(const State& state) {
  std::map<Uuid, ClientUsage> sums;
  for (const auto& [id, batch] : state.batches.all()) {
    ClientUsage& sum = sums[batch.client];
    ++sum.batches;
    sum.jobs += batch.pending_jobs;
    sum.bytes += batch.pending_bytes;
    std::uint64_t pending = batch.job_count - batch.finished;
    for (const Submission& held : batch.held) pending += held.jobs.size();
    LF_CHECK(pending == batch.pending_jobs, "batch {}: {} jobs have no outcome, charged are {}", id,
             pending, batch.pending_jobs);
  }
  for (const auto& [client, load] : state.usage.all()) {
    const ClientUsage& sum = sums[client];
    LF_CHECK(load.jobs == sum.jobs && load.bytes == sum.bytes && load.batches == sum.batches,
             "client {}: {} jobs, {} bytes, {} batches are charged", client.ToString(), load.jobs,
             load.bytes, load.batches);
    sums.erase(client);
  }
  for (const auto& [client, sum] : sums) {
    LF_CHECK(sum.batches == 0 && sum.jobs == 0, "client {} has jobs and no load",
             client.ToString());
  }
}

}  // namespace

void CheckInvariants(const State& state) {
  CheckLoads(state);
  state.batches.CheckInvariants();
  state.ready.CheckInvariants();
  state.single_flight.CheckInvariants();
  state.affinities.CheckInvariants();
  state.workers.CheckInvariants();
  state.long_polls.CheckInvariants();
  state.unschedulable.CheckInvariants(state.workers, state.ready);

  std::size_t queued = 0;
  AcceptanceTimes queued_since;
  std::size_t leased = 0;
  std::size_t expiring = 0;
  std::size_t retrying = 0;
  state.jobs.ForEachUnordered([&](const Job& job) {
    CheckJob(state, job);
    if (std::holds_alternative<Queued>(job.progress)) {
      ++queued;
      queued_since.Add(job.accepted_at);
    }
    leased += std::holds_alternative<Leased>(job.progress) ? 1 : 0;
    expiring += job.expires_at != Instant::max() ? 1 : 0;
    retrying += std::holds_alternative<Retrying>(job.progress) ? 1 : 0;
  });
  LF_CHECK(queued == state.ready.size(), "{} jobs say that they are queued", queued);
  LF_CHECK(queued_since == state.queued_since, "the queued jobs were accepted at other times");
  LF_CHECK(retrying == state.retries.size(), "{} jobs say that they are tried again", retrying);
  LF_CHECK(expiring == state.deadlines.size(), "{} jobs expire, {} are listed", expiring,
           state.deadlines.size());
  state.affinities.ForEachWaiting([&](const std::string& affinity, JobId id) {
    const Job* job = state.jobs.Find(id);
    LF_CHECK(job != nullptr && job->spec.affinity == affinity &&
                 std::holds_alternative<Queued>(job->progress),
             "job {} does not wait with affinity '{}'", id, affinity);
  });

  std::size_t running = 0;
  state.leases.ForEachUnordered([&](const LeaseRecord& lease) {
    CheckLease(state, lease);
    running += lease.stage == LeaseStage::kRunning ? 1 : 0;
  });
  LF_CHECK(running == leased, "{} running leases, {} leased jobs", running, leased);
  std::size_t held = 0;
  for (const auto& [id, worker] : state.workers.all()) held += worker.running.size();
  LF_CHECK(running == held, "{} running leases, workers have {}", running, held);
}

}  // namespace loopfleet::coordinator
