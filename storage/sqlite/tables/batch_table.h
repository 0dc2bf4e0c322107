#pragma once
// BatchTable: StoredBatch <-> row of `batches`, StoredRequest <-> row of `requests`.

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class BatchTable {
 public:
  explicit BatchTable(Connection& connection) : connection_(connection) {}

  Status Save(const StoredBatch& batch);  // inserts or replaces it
  Result<std::optional<StoredBatch>> Find(BatchId batch);
  // These skip damaged rows, for which Find() fails with kCorrupt.
  Result<std::vector<StoredBatch>> List(std::uint32_t max);  // newest first
  Result<std::optional<StoredBatch>> NewestOfClients();      // skips the coordinator's own
  Result<std::vector<StoredBatch>> ListUnfinished();         // oldest first
  Result<std::vector<BatchId>> DamagedUnfinished();
  // The batch as its requests, jobs and outcomes describe it, for when its own row is damaged.
  // Whether it was open or cancelled is lost: it comes back closed and not cancelled. kCorrupt: all
  // its requests are damaged or gone, so its client is unknown. Reads all requests.
  Result<StoredBatch> Rebuild(BatchId batch);
  Result<std::uint64_t> NextId();

  // kExists: the client sent this request before.
  Status InsertRequest(const JobsAccepted& accepted);
  Result<std::optional<StoredRequest>> FindRequest(const Uuid& client, const Uuid& request_id);

 private:
  Connection& connection_;
};

}  // namespace loopfleet::storage
