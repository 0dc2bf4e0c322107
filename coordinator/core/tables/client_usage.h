#pragma once
// ClientUsageTable: how much room in the coordinator each client uses, and how fast it sends
// requests, so that no client can take the others' room. The quotas are in Limits (…_per_client).
//
// Invariant: a client's jobs, bytes and batches are the sums over its batches in the BatchTable. A
// client with no usage and no recent request is forgotten.

#include <cstddef>
#include <cstdint>
#include <map>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/job_spec.h"

namespace loopfleet::coordinator {

// The memory that a waiting job takes, approximately.
std::uint64_t MemoryBytesOf(const JobSpec& spec);

struct ClientUsage {
  std::uint64_t jobs = 0;   // without an outcome; including those on their way to disk
  std::uint64_t bytes = 0;  // of these
  std::uint32_t batches = 0;
  Instant paid_until{};  // advanced by 1 / rate with each request; see Ask
};

class ClientUsageTable {
 public:
  ClientUsage Of(const Uuid& client) const;
  void OpenBatch(const Uuid& client) { ++loads_[client].batches; }
  void CloseBatch(const Uuid& client);
  void Add(const Uuid& client, std::uint64_t jobs, std::uint64_t bytes);
  void Take(const Uuid& client, std::uint64_t jobs, std::uint64_t bytes);

  // Charges one request. 0: it is admitted; else how long to wait before a retry. Over any time t,
  // at most (t + 1 s) * per_second requests of a client are admitted.
  Nanos Ask(const Uuid& client, std::uint32_t per_second, Instant now);
  // What Ask() would return; charges nothing.
  Nanos WaitOf(const Uuid& client, std::uint32_t per_second, Instant now) const;

  void ForgetIdle(Instant now);
  std::size_t size() const { return loads_.size(); }
  std::uint64_t rows_seen() const { return rows_seen_; }  // Core::rows_seen
  std::uint64_t bytes() const { return bytes_; }          // of all clients
  const std::map<Uuid, ClientUsage>& all() const { return loads_; }

 private:
  std::map<Uuid, ClientUsage> loads_;
  std::uint64_t bytes_ = 0;
  std::uint64_t rows_seen_ = 0;
};

}  // namespace loopfleet::coordinator
