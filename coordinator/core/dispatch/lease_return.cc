#include "coordinator/core/dispatch/lease_return.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/counted.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/dispatch/retry.h"

namespace loopfleet::coordinator {
namespace {

// The conditions under which the job was, or would have been, run.
Conditions ConditionsOf(const wire::WorkerHello& facts, const JobSpec& spec) {
  return {.hardware = facts.hardware,
          .compiler = facts.compiler,
          .threads = spec.threads,
          .cache = spec.cache,
          .policy = facts.policy};
}

// A worker was lost with the job, or lost the job. Decides whether that counts as an attempt. It
// does if the worker was seen to hold the job, or may have crashed on it before it could report
// that. A worker with the announce capability announces a job that was lost before it starts the
// job; so without an announcement it did not start.
LeaseEnd CountLoss(Transaction& tx, Job& job, const LeaseRecord& lease) {
  ++job.losses;
  if (lease.was_held) return LeaseEnd::kLost;
  const bool was_announced =
      job.attempts() > 1 && tx.state.workers.Find(lease.worker)->Can(wire::kAnnounceCapability);
  if (job.unseen_losses++ >= tx.limits().max_unseen_losses) return LeaseEnd::kLost;
  return was_announced ? LeaseEnd::kUnrun : LeaseEnd::kLost;
}

// A worker that cannot read its leases drops them each time; a lost message is rare. Counted among
// the retries, so that operators see it.
LeaseEnd CountUnseen(Transaction& tx, Job& job) {
  tx.effects.push_back(Observation{JobWasRetried{FailureCode::kWorkerLost}});
  return job.unseen_losses++ >= tx.limits().max_unseen_losses ? LeaseEnd::kLost : LeaseEnd::kUnrun;
}

std::string LostText(const Job& job, const std::string& worker, bool was_unseen) {
  if (!was_unseen)
    return fmt::format("the worker went away in each of {}",
                       Counted(job.attempts(), "attempt", "attempts"));
  return fmt::format(
      "{} leases of this job did not arrive, the last ones at worker {}, which may be too old to "
      "read them: see its log for coordinator.unreadable",
      job.unseen_losses, worker);
}

}  // namespace

void ReturnLease(Transaction& tx, LeaseId id, LeaseEnd how) {
  const JobId job_id = tx.state.leases.Find(id)->job;
  Job& job = tx.state.jobs.At(job_id);
  const wire::WorkerHello last = tx.state.workers.Find(tx.state.leases.Find(id)->worker)->facts;
  const bool was_unseen = how == LeaseEnd::kUnseen;
  if (was_unseen) {
    how = CountUnseen(tx, job);
  } else if (how == LeaseEnd::kLost) {
    how = CountLoss(tx, job, *tx.state.leases.Find(id));
  }
  EndLease(tx, id);
  if (how == LeaseEnd::kUnrun) {
    std::erase(job.counted, id);
    if (AskAnother(tx, job)) return;
  }
  if (EndWithFirstVerdict(tx, job_id)) return;
  if (how == LeaseEnd::kLost && job.attempts() >= tx.limits().max_attempts) {
    Failure lost{.code = FailureCode::kWorkerLost, .message = LostText(job, last.name, was_unseen)};
    Ending ending = FailedBy(std::move(lost), Verdict::kAboutTheTree);
    ending.worker = last.name;
    ending.evaluation.conditions = ConditionsOf(last, job.spec);
    FinishJob(tx, job_id, std::move(ending));
    return;
  }
  PutInFront(tx, job);
}

void ReturnLeases(Transaction& tx, const std::set<LeaseId>& leases, LeaseEnd how) {
  const std::vector<LeaseId> ids(leases.begin(), leases.end());  // `leases` may change below
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) ReturnLease(tx, *id, how);
}

void ReturnMissing(Transaction& tx, const std::set<LeaseId>& missing) {
  for (auto lease = missing.rbegin(); lease != missing.rend(); ++lease) {
    const bool was_held = tx.state.leases.Find(*lease)->was_held;
    ReturnLease(tx, *lease, was_held ? LeaseEnd::kLost : LeaseEnd::kUnseen);
  }
}

}  // namespace loopfleet::coordinator
