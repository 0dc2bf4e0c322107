#include "coordinator/core/dispatch/bulk_completion.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "coordinator/core/dispatch/job_lifecycle.h"

namespace loopfleet::coordinator {
namespace {

// Of one answer, before those who wait for another one have their turn.
constexpr std::size_t kFollowersInARow = 256;
// Indices passed over for each job ended: what finished before costs a look each.
constexpr std::uint64_t kLooksForEach = 10;

// Ends unfinished jobs of the batch in their order, `left` of them. Whether it has no more.
bool CancelSome(Turn& turn, Batch& batch, std::size_t& left, Revocations& revoked) {
  std::uint64_t looks = left * kLooksForEach;
  for (; batch.cancelled_before < batch.accepted; ++batch.cancelled_before) {
    if (left == 0 || looks == 0) return false;
    --looks;
    const JobId id{.batch = batch.id, .index = batch.cancelled_before};
    if (turn.state.jobs.Find(id) == nullptr) continue;
    --left;
    EndWherever(turn, id, CancelledFailure(), revoked);
  }
  return true;
}

// As many as workers have places at most: nobody works on for nothing.
void CancelRunning(Turn& turn, BatchId batch, Revocations& revoked) {
  std::vector<JobId> running;
  for (const auto& [id, worker] : turn.state.workers.all()) {
    for (const LeaseId lease : worker.running) {
      const JobId job = turn.state.leases.Find(lease)->job;
      if (job.batch == batch) running.push_back(job);
    }
  }
  for (const JobId job : running) EndWherever(turn, job, CancelledFailure(), revoked);
}

void ShareAnswers(Turn& turn, std::size_t& left) {
  while (left > 0) {
    const auto owed = turn.state.in_flight.TakeOwed(std::min(left, kFollowersInARow));
    if (owed.jobs.empty()) return;
    left -= owed.jobs.size();
    for (const JobId job : owed.jobs) ShareAnswer(turn, job, owed.answer);
  }
}

void GoOnCancelling(Turn& turn, std::size_t& left) {
  State& state = turn.state;
  std::deque<BatchId>& cancelled = state.endings.cancelled;
  Revocations revoked;
  while (left > 0 && !cancelled.empty()) {
    Batch* batch = state.batches.Find(cancelled.front());  // none: its jobs ended otherwise
    if (batch != nullptr && !CancelSome(turn, *batch, left, revoked)) break;
    cancelled.pop_front();
  }
  SendRevocations(turn, std::move(revoked));
}

}  // namespace

Failure CancelledFailure() {
  return {.code = FailureCode::kCancelled, .message = "the batch was cancelled"};
}

void StartCancelling(Turn& turn, Batch& batch) {
  Revocations revoked;
  std::size_t left = turn.limits().max_endings_per_turn;
  if (!CancelSome(turn, batch, left, revoked)) {
    CancelRunning(turn, batch.id, revoked);
    turn.state.endings.cancelled.push_back(batch.id);
  }
  SendRevocations(turn, std::move(revoked));
}

void CancelArrived(Turn& turn, const Batch& batch, std::uint32_t first_index) {
  Revocations revoked;
  for (std::uint32_t index = first_index; index < batch.accepted; ++index) {
    const JobId id{.batch = batch.id, .index = index};
    if (turn.state.jobs.Find(id) != nullptr) EndWherever(turn, id, CancelledFailure(), revoked);
  }
  SendRevocations(turn, std::move(revoked));
}

void Cancel(Turn& turn, JobId job) {
  Revocations revoked;
  EndWherever(turn, job, CancelledFailure(), revoked);
  SendRevocations(turn, std::move(revoked));
}

void EndNextPiece(Turn& turn) {
  Endings& endings = turn.state.endings;
  if (endings.piece_under_way) return;
  std::size_t left = turn.limits().max_endings_per_turn;
  const std::size_t before = turn.commit.outcomes.size();
  ShareAnswers(turn, left);
  GoOnCancelling(turn, left);
  endings.piece_under_way = turn.commit.is_piece = turn.commit.outcomes.size() > before;
}

}  // namespace loopfleet::coordinator
