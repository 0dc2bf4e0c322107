#pragma once
// BatchesInWork: the batches that the writer's transactions change. A transaction writes one row a
// batch, at its end, however many of its jobs finish; a batch in work is not read again by each.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
  // row is damaged it is rebuilt, and counts as closed until a caller knows better.
  enum class Known { kNothing, kIsOpen };
  Result<StoredBatch*> Change(BatchId id, Known known = Known::kNothing);
  Result<StoredBatch*> Close(BatchId id);  // as Change
  // Gives the changed rows to the table, whose Flush() writes them.
  Status Save();

  void Committed();  // what Save() gave is on disk
  void RolledBack();
  void Forget() { known_.Clear(); }  // others changed the table
  // Damaged rows met since the last call.
  std::uint64_t TakeDamagedCount() { return std::exchange(damaged_, 0); }

 private:
  Result<bool> IsThere(BatchId id);
  Result<StoredBatch*> Entry(BatchId id);  // of changed_

  static constexpr std::size_t kMostKnown = 4096;
  BatchTable& table_;
  std::map<BatchId, StoredBatch> changed_;             // by the transaction
  RecentMap<BatchId, StoredBatch> known_{kMostKnown};  // as on disk
  // Rebuilt batches that may in truth be open: with the transaction, and as on disk.
  std::set<BatchId> presumed_closed_;
  std::set<BatchId> presumed_on_disk_;
  std::optional<BatchId> newest_;  // of all that were ever accepted; none: not read yet
  std::uint64_t damaged_ = 0;
};

}  // namespace loopfleet::storage
