#include "coordinator/expiry_transitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
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
