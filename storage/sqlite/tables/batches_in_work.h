#pragma once
// BatchesInWork: the batches that the writer's transactions change. A transaction writes one row a
// batch, at its end, however many of its jobs finish; a batch in work is not read again by each.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/recent_map.h"
#include "storage/sqlite/tables/batch_table.h"

namespace loopfleet::storage {

class BatchesInWork {
 public:
  explicit BatchesInWork(BatchTable& table) : table_(table) {}

  // kExists: its number was given before.
  Status Add(const StoredBatch& batch);
  // The batch as the transaction leaves it; valid until it ends. kInvalid: there is none. If its
  // row is damaged it is rebuilt, and then it is closed or open, as told.
  enum class IfRebuilt { kIsClosed, kIsOpen };
  Result<StoredBatch*> Change(BatchId id, IfRebuilt if_rebuilt = IfRebuilt::kIsClosed);
  // Gives the changed rows to the table, whose Flush() writes them.
  Status Save();

  void Committed();  // what Save() gave is on disk
  void RolledBack() { changed_.clear(); }
  void Forget() { known_.Clear(); }  // others changed the table
  // Damaged rows met since the last call.
  std::uint64_t TakeDamagedCount() { return std::exchange(damaged_, 0); }

 private:
  Result<bool> IsThere(BatchId id);

  static constexpr std::size_t kMostKnown = 4096;
  BatchTable& table_;
  std::map<BatchId, StoredBatch> changed_;             // by the transaction
  RecentMap<BatchId, StoredBatch> known_{kMostKnown};  // as on disk
  std::optional<BatchId> newest_;  // of all that were ever accepted; none: not read yet
  std::uint64_t damaged_ = 0;
};

}  // namespace loopfleet::storage
