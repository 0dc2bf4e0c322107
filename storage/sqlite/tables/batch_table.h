#pragma once
// BatchTable: StoredBatch <-> row of `batches`, StoredRequest <-> row of `requests`.

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/bulk_insert.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class BatchTable {
 public:
  explicit BatchTable(Connection& connection) : connection_(connection) {}

  // Inserts or replaces it. The row is written by Flush(), or sooner.
  Status Save(const StoredBatch& batch);
  Result<std::optional<StoredBatch>> Find(BatchId batch);
  // These skip damaged rows, for which Find() fails with kCorrupt.
  Result<std::vector<StoredBatch>> List(std::uint32_t max);  // StoreReader::ListBatches
  Result<std::vector<StoredBatch>> ListAfter(BatchId batch, std::uint32_t max);  // oldest first
  Result<std::optional<StoredBatch>> NewestOfClients();  // skips the coordinator's own
  Result<std::vector<StoredBatch>> ListUnfinished();     // oldest first
  Result<std::vector<BatchId>> DamagedUnfinished();
  // The batch as its requests, jobs and outcomes describe it, for when its own row is damaged.
  // It comes back closed, and cancelled if one of its jobs was: a cancellation that no job's
  // outcome has followed yet is lost. kCorrupt: all its requests are damaged or gone, so its client
  // is unknown.
  Result<StoredBatch> Rebuild(BatchId batch);
  Result<std::uint64_t> NextId();

  // The first batch with a higher number.
  struct Next {
    BatchId id;
    bool is_newest = false;
    std::optional<StoredBatch> batch;  // none: its row is damaged
  };
  Result<std::optional<Next>> After(BatchId batch);
  // Whether this batch was removed by a pruning (storage/pruning.h).
  Result<bool> WasPruned(BatchId batch);
  Status Remove(BatchId batch);  // its own row
  // At most `most`; returns how many. Fewer: none is left.
  Result<std::uint32_t> RemoveRequests(BatchId batch, std::uint32_t most);

  // The row is written by Flush(), or sooner; so kExists, if the client sent this request before,
  // may also come from there.
  Status InsertRequest(const JobsAccepted& accepted);
  Status Flush() {
    LF_TRY_VOID(requests_.Flush());
    return rows_.Flush();
  }
  void Forget() {  // the transaction was rolled back
    requests_.Forget();
    rows_.Forget();
  }
  Result<std::optional<StoredRequest>> FindRequest(const Uuid& client, const Uuid& request_id);

 private:
  Connection& connection_;
  RowFeed requests_{
      connection_, "INSERT OR ROLLBACK INTO requests SELECT c0,c1,c2,c3,c4,c5,c6,c7 FROM row_feed"};
  RowFeed rows_{connection_, R"sql(
    INSERT INTO batches SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9 FROM row_feed WHERE true
    ON CONFLICT (id) DO UPDATE SET
      client = excluded.client, accepted_at = excluded.accepted_at,
      closed = excluded.closed, cancelled = excluded.cancelled, job_count = excluded.job_count,
      finished = excluded.finished, failed = excluded.failed, from_store = excluded.from_store,
      checksum = excluded.checksum)sql"};
};

}  // namespace loopfleet::storage
