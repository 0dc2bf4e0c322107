#include "coordinator/core/dispatch/expiry.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/no_matching_worker.h"

namespace loopfleet::coordinator {
namespace {

void Expire(Turn& turn, JobId id, Revocations& revoked) {
  EndWherever(turn, id, ExpiredFailure(turn.state.jobs.At(id).spec), revoked);
}

}  // namespace

void Expire(Turn& turn, JobId id) {
  Revocations revoked;
  Expire(turn, id, revoked);
  SendRevocations(turn, std::move(revoked));
}

void ExpireOverdue(Turn& turn) {
  Revocations revoked;
  for (std::uint32_t left = turn.limits().max_expiries_per_tick; left > 0; --left) {
    const auto due = turn.state.deadlines.Due(turn.now.instant);
    if (!due) break;
    Expire(turn, *due, revoked);
  }
  SendRevocations(turn, std::move(revoked));
}

void ExpireUnserved(Turn& turn) {
  State& state = turn.state;
  const Instant now = turn.now.instant;
  const Nanos grace = state.limits.no_worker_grace;
  std::uint32_t left = state.limits.max_expiries_per_tick;
  for (auto& [demand, entry] : state.unserved.Look(state.workers, state.ready, now)) {
    if (now - entry.since < grace || now < entry.next_look) continue;
    std::optional<Failure> failure;
    entry.next_look = Instant::max();
    for (const ReadyQueue::Group& group : state.ready.Groups(demand)) {
      while (const auto front = state.ready.FrontOf(demand, group)) {
        const Instant over =
            std::max(entry.since, state.jobs.At(*front).accepted_at) + grace;
        if (now < over || left == 0) {
          entry.next_look = std::min(entry.next_look, over);
          break;
        }
        --left;
        if (!failure) {
          failure = Failure{.code = FailureCode::kNoMatchingWorker,
                            .message = WhyUnserved(state.workers, demand, grace)};
        }
        FinishJob(turn, *front, FailedBy(*failure, Verdict::kNobodyCame));
      }
    }
  }
}

}  // namespace loopfleet::coordinator
