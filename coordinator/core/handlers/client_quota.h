#pragma once
// Admission checks for client requests: room for jobs, the client's quotas, and its request rate.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Why jobs of this client are refused regardless of room: the coordinator is shutting down, or
// `append_to` is not an open batch of this client.
std::optional<Failure> Validate(const State& state, const Uuid& client,
                                const std::optional<BatchId>& append_to);
// Why jobs of this client cannot be accepted, into a batch or (null) a new one. Empty if there is
// room and the client is within its quotas.
struct Arriving {
  std::size_t jobs = 0;
  std::uint64_t bytes = 0;  // MemoryBytesOf
};
std::optional<Failure> CheckQuota(const State& state, const Uuid& client, const Batch* batch,
                                  const Arriving& arriving);
// The part of CheckQuota that does not depend on the client: whether there is room.
std::optional<Failure> CheckCapacity(const State& state, const Batch* batch,
                                     const Arriving& arriving);

// Why the client must wait before its next request; empty if it need not. Charges nothing.
std::optional<Failure> CheckRequestRate(const State& state, const Uuid& client, Instant now);
// Charges a request. True if the client exceeds its rate; it has been refused then.
bool ExceedsRequestRate(Transaction& tx, const Asker& asker, const Uuid& client);

}  // namespace loopfleet::coordinator
