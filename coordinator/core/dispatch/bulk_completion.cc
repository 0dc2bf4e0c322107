#include "coordinator/core/dispatch/bulk_completion.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "coordinator/core/dispatch/job_lifecycle.h"

namespace loopfleet::coordinator {
namespace {

// Followers of one answer served in a row, before followers of other answers get their turn.
constexpr std::size_t kFollowersInARow = 256;
// Indices visited for each job ended: a job that finished before costs a look-up each.
constexpr std::uint64_t kLooksForEach = 10;

// Ends unfinished jobs of the batch in order, `left` of them. Returns whether none is left.
bool CancelSome(Transaction& tx, Batch& batch, std::size_t& left, Revocations& revoked) {
  std::uint64_t looks = left * kLooksForEach;
  for (; batch.cancelled_before < batch.accepted; ++batch.cancelled_before) {
    if (left == 0 || looks == 0) return false;
    --looks;
    const JobId id{.batch = batch.id, .index = batch.cancelled_before};
    if (tx.state.jobs.Find(id) == nullptr) continue;
    --left;
    EndWherever(tx, id, CancelledFailure(), revoked);
  }
  return true;
}

// Running jobs end before those that wait, so that no worker goes on with them in vain. There are
// at most as many as workers have places.
void QueueRunning(State& state, BatchId batch) {
  for (const auto& [id, worker] : state.workers.all()) {
    for (const LeaseId lease : worker.running) {
      const JobId job = state.leases.Find(lease)->job;
      if (job.batch == batch) state.endings.running.push_back(job);
    }
  }
}

void CancelRunning(Transaction& tx, std::size_t& left, Revocations& revoked) {
  std::deque<JobId>& running = tx.state.endings.running;
  for (; left > 0 && !running.empty(); running.pop_front()) {
    if (tx.state.jobs.Find(running.front()) == nullptr) continue;
    --left;
    EndWherever(tx, running.front(), CancelledFailure(), revoked);
  }
}

void ShareAnswers(Transaction& tx, std::size_t& left) {
  while (left > 0) {
    const auto owed = tx.state.single_flight.TakePendingReplies(std::min(left, kFollowersInARow));
    if (owed.jobs.empty()) return;
    left -= owed.jobs.size();
    for (const JobId job : owed.jobs) ShareAnswer(tx, job, owed.answer);
  }
}

void GoOnCancelling(Transaction& tx, std::size_t& left) {
  State& state = tx.state;
  std::deque<BatchId>& cancelled = state.endings.cancelled;
  Revocations revoked;
  CancelRunning(tx, left, revoked);
  while (left > 0 && !cancelled.empty()) {
    Batch* batch = state.batches.Find(cancelled.front());  // null: its jobs ended otherwise
    if (batch != nullptr && !CancelSome(tx, *batch, left, revoked)) break;
    cancelled.pop_front();
  }
  SendRevocations(tx, std::move(revoked));
}

}  // namespace

Failure CancelledFailure() {
  return {.code = FailureCode::kCancelled, .message = "the batch was cancelled"};
}

void StartCancelling(Transaction& tx, Batch& batch) {
  Revocations revoked;
  std::size_t left = tx.limits().max_endings_per_event;
  if (!CancelSome(tx, batch, left, revoked)) {
    QueueRunning(tx.state, batch.id);
    tx.state.endings.cancelled.push_back(batch.id);
  }
  SendRevocations(tx, std::move(revoked));
}

void CancelArrived(Transaction& tx, const Batch& batch, std::uint32_t first_index) {
  Revocations revoked;
  for (std::uint32_t index = first_index; index < batch.accepted; ++index) {
    const JobId id{.batch = batch.id, .index = index};
    if (tx.state.jobs.Find(id) != nullptr) EndWherever(tx, id, CancelledFailure(), revoked);
  }
  SendRevocations(tx, std::move(revoked));
}

void Cancel(Transaction& tx, JobId job) {
  Revocations revoked;
  EndWherever(tx, job, CancelledFailure(), revoked);
  SendRevocations(tx, std::move(revoked));
}

void EndNextPiece(Transaction& tx) {
  Endings& endings = tx.state.endings;
  if (endings.piece_under_way) return;
  std::size_t left = tx.limits().max_endings_per_event;
  const std::size_t before = tx.commit.outcomes.size();
  ShareAnswers(tx, left);
  GoOnCancelling(tx, left);
  endings.piece_under_way = tx.commit.is_piece = tx.commit.outcomes.size() > before;
}

}  // namespace loopfleet::coordinator
