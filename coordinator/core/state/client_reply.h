#pragma once
// Replies shared by several handlers.

#include <string>
#include <utility>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

inline void Reply(Transaction& tx, const Asker& asker, wire::CoordinatorMessage message) {
  if (asker.peer.empty()) return;  // an internal batch has no asker
  tx.effects.push_back(
      ReplyToClient{.peer = asker.peer, .number = asker.number, .message = std::move(message)});
}

// Includes a retry time where a retry can help.
inline void RefuseFor(Transaction& tx, const Asker& asker, Failure failure,
                      std::uint32_t retry_after_ms) {
  tx.effects.push_back(Observation{RequestWasRefused{failure.code}});
  Reply(tx, asker, wire::Refused{.failure = std::move(failure), .retry_after_ms = retry_after_ms});
}
inline void Refuse(Transaction& tx, const Asker& asker, FailureCode code, std::string message) {
  const std::uint32_t retry_after_ms =
      InfoOf(code).policy.is_retryable ? tx.limits().retry_after_ms : 0;
  RefuseFor(tx, asker, {.code = code, .message = std::move(message)}, retry_after_ms);
}

inline void ReplyToWaiter(Transaction& tx, const Waiter& waiter) {
  tx.effects.push_back(SendOutcomes{.peer = waiter.asker.peer,
                                    .number = waiter.asker.number,
                                    .payer = {.client = waiter.client, .key = waiter.key},
                                    .fetch = waiter.fetch});
}

inline void ReplyWithBatch(Transaction& tx, const Asker& asker, BatchId batch) {
  tx.effects.push_back(AnswerFromStorage{
      .peer = asker.peer, .number = asker.number, .question = wire::ShowBatch{.batch = batch}});
}

// When nothing about the batch can change any more, storage alone keeps it.
inline void RemoveIfOver(Transaction& tx, BatchId id) {
  if (!tx.state.batches.At(id).IsOver()) return;
  for (const Waiter& waiter : tx.state.long_polls.TakeAllOf(id)) ReplyToWaiter(tx, waiter);
  const Batch& batch = tx.state.batches.At(id);
  if (!IsInternal(batch)) {
    tx.effects.push_back(Observation{
        BatchWasFinished{.batch = id, .jobs = batch.job_count, .cancelled = batch.cancelled}});
  }
  tx.state.usage.CloseBatch(batch.client);
  tx.state.batches.Remove(id);
}

}  // namespace loopfleet::coordinator
