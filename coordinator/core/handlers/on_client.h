#pragma once
// What clients can cause: submissions, cancellations and questions.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnSubmission(Turn& turn, Submission submission);

// Why no jobs of this client are taken now, whatever room there is: the coordinator goes down, or
// `append_to` is no open batch of this client.
std::optional<Failure> WhyNotTaken(const State& state, const Uuid& client,
                                   const std::optional<BatchId>& append_to);
// Why jobs of this client cannot be taken in, into a batch or (null) into a new one; empty if there
// is room and it is within its quotas.
struct Arriving {
  std::size_t jobs = 0;
  std::uint64_t bytes = 0;  // MemoryBytesOf
};
std::optional<Failure> WhyNoRoom(const State& state, const Uuid& client, const Batch* batch,
                                 const Arriving& arriving);

void OnClientAsked(Turn& turn, ClientAsked event);
void OnClientUnreachable(Turn& turn, const ClientUnreachable& event);

// Why the client has to wait before it asks again; empty if it need not. Nothing is counted.
std::optional<Failure> WhyTooOften(const State& state, const Uuid& client, Instant now);
// Counts a request. Whether the client has to wait before it asks again; then it has been told.
bool AsksTooOften(Turn& turn, const Asker& asker, const Uuid& client);

// Who came with one of these keys is gone.
void OnKeysRevoked(Turn& turn, const KeysRevoked& event);

// A batch of the coordinator's own, so that nobody is answered; dropped if there is no room for it.
void SubmitOwnBatch(Turn& turn, std::vector<AdmittedJob> jobs);

// What became of the jobs of one message, once storage has answered.
void OnAcceptanceDurable(Turn& turn, AcceptanceCommit commit);
void OnAcceptanceRefused(Turn& turn, AcceptanceCommit commit, const Failure& failure);

wire::WorkerInfo WorkerInfoOf(const Worker& worker, Instant now);

// Fetches whose time is over get what there is.
void AnswerExpiredWaiters(Turn& turn);

}  // namespace loopfleet::coordinator
