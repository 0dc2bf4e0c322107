#pragma once
// What a client may ask for: room for its jobs, its share of it, and how often it may ask.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Why no jobs of this client are taken now, whatever room there is: the coordinator goes down, or
// `append_to` is no open batch of this client.
std::optional<Failure> Validate(const State& state, const Uuid& client,
                                const std::optional<BatchId>& append_to);
// Why jobs of this client cannot be taken in, into a batch or (null) into a new one; empty if there
// is room and it is within its quotas.
struct Arriving {
  std::size_t jobs = 0;
  std::uint64_t bytes = 0;  // MemoryBytesOf
};
std::optional<Failure> CheckQuota(const State& state, const Uuid& client, const Batch* batch,
                                  const Arriving& arriving);
// ... whoever sends them.
std::optional<Failure> CheckCapacity(const State& state, const Batch* batch, std::size_t jobs);

// Why the client has to wait before it asks again; empty if it need not. Nothing is counted.
std::optional<Failure> CheckRequestRate(const State& state, const Uuid& client, Instant now);
// Counts a request. Whether the client has to wait before it asks again; then it has been told.
bool ExceedsRequestRate(Transaction& tx, const Asker& asker, const Uuid& client);

}  // namespace loopfleet::coordinator
