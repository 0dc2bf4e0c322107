#include "coordinator/core/dispatch/expiry.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/no_matching_worker.h"

namespace loopfleet::coordinator {
namespace {

void Expire(Transaction& tx, JobId id, Revocations& revoked) {
  EndWherever(tx, id, ExpiredFailure(tx.state.jobs.At(id).spec), revoked);
}

}  // namespace

void Expire(Transaction& tx, JobId id) {
  Revocations revoked;
  Expire(tx, id, revoked);
  SendRevocations(tx, std::move(revoked));
}

void ExpireOverdue(Transaction& tx) {
  Revocations revoked;
  for (std::uint32_t left = tx.limits().max_expiries_per_tick; left > 0; --left) {
    const auto due = tx.state.deadlines.Due(tx.now.instant);
    if (!due) break;
    Expire(tx, *due, revoked);
  }
  SendRevocations(tx, std::move(revoked));
}

void ExpireUnschedulable(Transaction& tx) {
  State& state = tx.state;
  const Instant now = tx.now.instant;
  const Nanos grace = state.limits.no_worker_grace;
  std::uint32_t left = state.limits.max_expiries_per_tick;
  for (auto& [demand, entry] : state.unschedulable.Look(state.workers, state.ready, now)) {
    if (now - entry.since < grace || now < entry.next_look) continue;
    std::optional<Failure> failure;
    entry.next_look = Instant::max();
    for (const ReadyQueue::Group& group : state.ready.Groups(demand)) {
      while (const auto front = state.ready.FrontOf(demand, group)) {
        const Instant over = std::max(entry.since, state.jobs.At(*front).accepted_at) + grace;
        if (now < over || left == 0) {
          entry.next_look = std::min(entry.next_look, over);
          break;
        }
        --left;
        if (!failure) {
          failure = Failure{.code = FailureCode::kNoMatchingWorker,
                            .message = WhyUnschedulable(state.workers, demand, grace)};
        }
        FinishJob(tx, *front, FailedBy(*failure, Verdict::kNobodyCame));
      }
    }
  }
}

}  // namespace loopfleet::coordinator
