#pragma once
// The replies that several transitions make.

#include <string>
#include <utility>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

inline void Reply(Turn& turn, const Asker& asker, wire::CoordinatorMessage message) {
  if (asker.peer.empty()) return;  // nobody asked: a batch of the coordinator's own
  turn.effects.push_back(
      ReplyToClient{.peer = asker.peer, .number = asker.number, .message = std::move(message)});
}

// Says when to try again where that can help.
inline void RefuseFor(Turn& turn, const Asker& asker, Failure failure,
                      std::uint32_t retry_after_ms) {
  turn.effects.push_back(Observation{RequestWasRefused{failure.code}});
  Reply(turn, asker,
        wire::Refused{.failure = std::move(failure), .retry_after_ms = retry_after_ms});
}
inline void Refuse(Turn& turn, const Asker& asker, FailureCode code, std::string message) {
  const std::uint32_t retry_after_ms = InfoOf(code).retryable ? turn.limits().retry_after_ms : 0;
  RefuseFor(turn, asker, {.code = code, .message = std::move(message)}, retry_after_ms);
}

inline void ReplyToWaiter(Turn& turn, const Waiter& waiter) {
  turn.effects.push_back(SendOutcomes{.peer = waiter.asker.peer,
                                      .number = waiter.asker.number,
                                      .payer = {.client = waiter.client, .key = waiter.key},
                                      .fetch = waiter.fetch});
}

inline void ReplyWithBatch(Turn& turn, const Asker& asker, BatchId batch) {
  turn.effects.push_back(AnswerFromStorage{
      .peer = asker.peer, .number = asker.number, .question = wire::ShowBatch{.batch = batch}});
}

// Once nothing about the batch can change any more, storage alone has it.
inline void RemoveIfOver(Turn& turn, BatchId id) {
  if (!turn.state.batches.At(id).IsOver()) return;
  for (const Waiter& waiter : turn.state.waiters.TakeAllOf(id)) ReplyToWaiter(turn, waiter);
  const Batch& batch = turn.state.batches.At(id);
  if (!IsOwn(batch)) {
    turn.effects.push_back(Observation{
        BatchWasFinished{.batch = id, .jobs = batch.job_count, .cancelled = batch.cancelled}});
  }
  turn.state.loads.CloseBatch(batch.client);
  turn.state.batches.Remove(id);
}

}  // namespace loopfleet::coordinator
