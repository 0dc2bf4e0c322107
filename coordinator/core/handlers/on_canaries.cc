#include "coordinator/core/handlers/on_canaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/dispatch/lease_return.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/handlers/on_submit.h"
#include "coordinator/core/state/worker_reply.h"
#include "storage/record.h"

namespace loopfleet::coordinator {
namespace {

// A restarted coordinator does not know a worker's first hello, nor does one that forgot the
// worker. A drift takes about 20 s to be noticed.
constexpr auto kBeforeHello = std::chrono::minutes(1);

// Whether storage is to look for results of the worker since then, which scans those of all
// workers. Not if there can be none. Nor if the worker finished nothing here or came a moment ago,
// so that it hardly has any, and another one with its key was suspected a moment ago: a key may
// bring any number of workers.
bool IsToBeSuspected(Transaction& tx, const Worker& worker, Instant since) {
  State& state = tx.state;
  if (worker.finished_jobs == 0 && since >= worker.known_since) return false;
  const Instant recently = tx.now.instant - state.limits.min_drift;
  std::erase_if(state.suspected_at, [&](const auto& entry) { return entry.second <= recently; });
  const bool came_in_this_run = worker.known_since >= state.started_at + kBeforeHello;
  const bool is_new = worker.finished_jobs == 0 || worker.known_since > recently;
  // Without keys, all workers would share the empty one.
  const std::string& who = worker.key.empty() ? worker.facts.name : worker.key;
  if (came_in_this_run && is_new && state.suspected_at.contains(who)) return false;
  state.suspected_at[who] = tx.now.instant;
  return true;
}

// The worker was quarantined. Its results from `since` on are flagged. Ready workers take
// over its jobs and remeasure its recent ones; jobs that none of them could run stay.
void Distrust(Transaction& tx, Worker& worker, Instant since) {
  State& state = tx.state;
  if (IsToBeSuspected(tx, worker, since)) {
    tx.writes.push_back(
        storage::ResultsSuspected{.worker = worker.facts.name,
                                  .since = state.wall.EarliestSince(since),
                                  .flagged_at = tx.now.wall,
                                  .reason = fmt::format("the worker went into quarantine: {}",
                                                        QuarantineText(QuarantineOf(worker)))});
  }
  state.workers.SetState(worker, StateOf(worker));
  std::set<LeaseId> taken;
  for (const LeaseId lease : worker.running) {
    const Job& job = state.jobs.At(state.leases.Find(lease)->job);
    if (state.workers.HasReady(DemandOf(job))) taken.insert(lease);
  }
  tx.effects.push_back(Observation{WorkerChanged{.change = WorkerChange::kQuarantined,
                                                 .name = worker.facts.name,
                                                 .leases = static_cast<std::uint32_t>(taken.size()),
                                                 .quarantine = QuarantineOf(worker)}});
  ReturnLeases(tx, taken, LeaseEnd::kUnrun);
  if (!taken.empty()) {
    Send(tx, *worker.peer, wire::Revoke{.leases = {taken.begin(), taken.end()}});
  }
  std::vector<ResolvedJob> again;
  for (MeasuredJob& measured : worker.in_doubt) {
    if (measured.reported_at < since) continue;
    const Placement placement = std::get<ResolvedTask>(measured.job.resolution).placement;
    if (!state.workers.HasReady(DemandOf(measured.job.spec, placement))) continue;
    measured.job.spec.freshness = Freshness::kMeasureAgain;
    again.push_back(std::move(measured.job));
  }
  worker.in_doubt.clear();
  worker.in_doubt_bytes = 0;
  SubmitInternalBatch(tx, std::move(again));
}

void ForgetOldestInDoubt(Worker& worker) {
  worker.in_doubt_bytes -= worker.in_doubt.front().bytes;
  worker.in_doubt.pop_front();
}

// When the doubt about a worker that begins to drift begins: when it was last steady, as it says,
// but no earlier than its first hello, because older results are of an earlier worker of its name,
// and no earlier than its last quarantine, which cast doubt on all before.
Instant DoubtedSince(const Worker& worker, Instant last_steady) {
  return std::max({last_steady, worker.known_since - kBeforeHello, worker.quarantined_at});
}

}  // namespace

void OnCanaries(Transaction& tx, Worker& worker, const wire::Heartbeat& heartbeat) {
  if (worker.canary == wire::CanaryState::kDrifting &&
      heartbeat.canary == wire::CanaryState::kSteady &&
      tx.now.instant < worker.quarantined_at + tx.limits().min_drift) {
    return;  // too early: the worker will report it again
  }
  const auto before = std::exchange(worker.canary, heartbeat.canary);
  worker.canary_ratio = heartbeat.canary_ratio;
  worker.drifting = heartbeat.drifting;
  // Doubt reaches no further back: no measurement is remeasured after that long.
  constexpr std::uint64_t kLongestDoubtMs = std::uint64_t{7} * 24 * 3600 * 1000;
  const Instant last_steady = tx.now.instant - std::chrono::milliseconds(std::min(
                                                   heartbeat.steady_since_ms, kLongestDoubtMs));
  if (heartbeat.canary == wire::CanaryState::kSteady) {
    // Measurements before the last steady window are past doubt. Before the first such window
    // nothing can be concluded.
    while (heartbeat.canary_ratio > 0 && !worker.in_doubt.empty() &&
           worker.in_doubt.front().reported_at < last_steady) {
      ForgetOldestInDoubt(worker);
    }
    if (before != heartbeat.canary) {
      worker.released_after = tx.state.leases.last();
      Observe(tx, WorkerChange::kReleased, worker, 0);
    }
  } else if (before != heartbeat.canary) {
    const Instant since = DoubtedSince(worker, last_steady);
    worker.quarantined_at = tx.now.instant;
    Distrust(tx, worker, since);
  }
}

void RememberInDoubt(Transaction& tx, Worker& worker, Job job) {
  const ResolvedTask measure = ToMeasureOf(job);
  MeasuredJob measured{.reported_at = tx.now.instant,
                       .job = {.spec = std::move(job.spec), .resolution = measure}};
  measured.job.spec.tag.clear();  // its reply has been made
  measured.bytes = MemoryBytesOf(measured.job.spec);
  worker.in_doubt_bytes += measured.bytes;
  worker.in_doubt.push_back(std::move(measured));
  while (worker.in_doubt.size() > tx.limits().max_remeasured ||
         worker.in_doubt_bytes > tx.limits().max_remeasured_bytes) {
    ForgetOldestInDoubt(worker);
  }
}

void PutInDoubt(Evaluation& evaluation, const std::string& doubt) {
  if (auto* measurement = std::get_if<Measurement>(&evaluation.verdict)) {
    measurement->grade = std::max(measurement->grade, Grade::kC);  // the worse one
  } else if (auto* failure = std::get_if<Failure>(&evaluation.verdict);
             failure != nullptr && InfoOf(failure->code).policy.depends_on_time) {
    failure->message += fmt::format("; in doubt: {}", doubt);
  }
}

}  // namespace loopfleet::coordinator
