#pragma once
// ClientUsageTable: how much of the coordinator each client takes up, and how fast it asks, so that
// no client can take the room of the others. The bounds are in Limits (…_per_client).
//
// Invariant: a client's jobs, bytes and batches are the sums over its batches in the BatchTable.
// A client that has nothing here and asked nothing lately is forgotten.

#include <cstddef>
#include <cstdint>
#include <map>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/job_spec.h"

namespace loopfleet::coordinator {

// What a waiting job takes in memory, about.
std::uint64_t MemoryBytesOf(const JobSpec& spec);

struct ClientUsage {
  std::uint64_t jobs = 0;   // without an outcome, with those on their way to disk
  std::uint64_t bytes = 0;  // of these
  std::uint32_t batches = 0;
  Instant paid_until{};  // each request moves it on by 1 / rate; see Ask
};

class ClientUsageTable {
 public:
  ClientUsage Of(const Uuid& client) const;
  void OpenBatch(const Uuid& client) { ++loads_[client].batches; }
  void CloseBatch(const Uuid& client);
  void Add(const Uuid& client, std::uint64_t jobs, std::uint64_t bytes);
  void Take(const Uuid& client, std::uint64_t jobs, std::uint64_t bytes);

  // A request. 0: it may be answered; else after how long it may. Over any time t, at most
  // (t + 1 s) * per_second requests of a client may.
  Nanos Ask(const Uuid& client, std::uint32_t per_second, Instant now);
  // What Ask() would say; nothing is counted.
  Nanos WaitOf(const Uuid& client, std::uint32_t per_second, Instant now) const;

  void ForgetIdle(Instant now);
  std::size_t size() const { return loads_.size(); }
  const std::map<Uuid, ClientUsage>& all() const { return loads_; }

 private:
  std::map<Uuid, ClientUsage> loads_;
};

}  // namespace loopfleet::coordinator
