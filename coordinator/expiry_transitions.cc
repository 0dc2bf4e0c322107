#include "coordinator/expiry_transitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "coordinator/explanation.h"
#include "coordinator/job_transitions.h"

namespace loopfleet::coordinator {
namespace {

using Revocations = std::map<Uuid, wire::Revoke>;

void Expire(Turn& turn, JobId id, Revocations& revoked) {
  State& state = turn.state;
  const Job& job = state.jobs.At(id);
  if (const auto* leased = std::get_if<Leased>(&job.progress)) {
    const LeaseId lease = leased->lease;
    revoked[state.leases.Find(lease)->worker].leases.push_back(lease);
    EndLease(turn, lease);
  }
  FinishJob(turn, id, FailedBy(ExpiredFailure(job.spec), Verdict::kAboutThisJob));
}

void Send(Turn& turn, Revocations revoked) {
  for (auto& [id, revoke] : revoked) {
    const Worker* worker = turn.state.workers.Find(id);
    if (!worker->peer) continue;  // it is told once it is back
    turn.effects.push_back(SendToWorker{.peer = *worker->peer, .command = std::move(revoke)});
  }
}

}  // namespace

Failure ExpiredFailure(const JobSpec& spec) {
  return {.code = FailureCode::kExpired,
          .message = fmt::format("not finished {} s after it was accepted", spec.deadline_s)};
}

void Expire(Turn& turn, JobId id) {
  Revocations revoked;
  Expire(turn, id, revoked);
  Send(turn, std::move(revoked));
}

void ExpireOverdue(Turn& turn) {
  Revocations revoked;
  for (std::uint32_t left = turn.limits().max_expiries_per_tick; left > 0; --left) {
    const auto due = turn.state.deadlines.Due(turn.now.instant);
    if (!due) break;
    Expire(turn, *due, revoked);
  }
  Send(turn, std::move(revoked));
}

void ExpireUnserved(Turn& turn) {
  State& state = turn.state;
  const Nanos grace = state.limits.no_worker_grace;
  std::uint32_t left = state.limits.max_expiries_per_tick;
  std::erase_if(state.served_at, [&](const auto& entry) { return !state.ready.Has(entry.first); });
  for (auto& [demand, served_at] : state.served_at) {
    if (state.workers.IsServed(demand)) served_at = turn.now.instant;
    if (turn.now.instant - served_at < grace) continue;
    const Failure failure{.code = FailureCode::kNoMatchingWorker,
                          .message = WhyUnserved(state.workers, demand, grace)};
    for (const ReadyQueue::Group& group : state.ready.Groups(demand)) {
      while (const auto front = state.ready.FrontOf(demand, group)) {
        const Instant waits_since = std::max(served_at, state.jobs.At(*front).accepted_at);
        if (turn.now.instant - waits_since < grace || left == 0) break;
        --left;
        FinishJob(turn, *front, FailedBy(failure, Verdict::kNobodyCame));
      }
    }
  }
}

}  // namespace loopfleet::coordinator
