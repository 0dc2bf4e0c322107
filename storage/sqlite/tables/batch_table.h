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
  // Both leave damaged rows out: Find() is kCorrupt for these.
  Result<std::vector<StoredBatch>> List(std::uint32_t max);  // newest first
  Result<std::optional<StoredBatch>> NewestOfClients();      // no audit of the coordinator's own
  Result<std::vector<StoredBatch>> ListUnfinished();         // oldest first
  Result<std::vector<BatchId>> DamagedUnfinished();
  // What the requests, jobs and outcomes of a batch say of it, for when its own row is damaged. Was
  // it open, that is lost: it is closed; was it cancelled, it is not said to be. kCorrupt: no sound
  // request of it is there, so nobody knows whose it was. Looks at all requests.
  Result<StoredBatch> Rebuild(BatchId batch);
  Result<std::uint64_t> NextId();

  // kExists: the client sent this request before.
  Status InsertRequest(const JobsAccepted& accepted);
  Result<std::optional<StoredRequest>> FindRequest(const Uuid& client, const Uuid& request_id);

 private:
  Connection& connection_;
};

}  // namespace loopfleet::storage
