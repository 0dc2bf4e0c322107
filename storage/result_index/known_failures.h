#pragma once
// KnownFailures: failures that an equal job would meet again, and where their outcomes are stored.
// So a kernel that hangs takes its ten seconds of a timing slot once, not once for each job. A
// failure answers for the full tuple, as a result does; a CUT for its bound and for lower ones.
//
// In memory: the newest kMost of them, about 100 bytes each; rows of earlier ones stay in the
// table. Any thread may read; only the writer adds and publishes.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "storage/record.h"
#include "storage/sqlite/id_range.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"

namespace loopfleet::storage {

// Whether such a failure answers equal jobs: it is about the tree and its conditions, not about one
// job's circumstances.
bool IsCacheable(FailureCode code);
// Whether a busy host can be part of the reason. Such a failure answers for one day only.
bool IsCircumstantial(FailureCode code);
inline constexpr std::chrono::hours kCircumstantialAge{24};

class KnownFailures {
 public:
  static constexpr std::size_t kMost = 65'536;

  struct Entry {
    std::uint64_t hash = 0;  // of the full tuple (HashOf); may collide
    FailureCode code = FailureCode::kRunCrash;
    std::uint64_t cut_above_ns = 0;
    BatchId batch;
    std::uint64_t sequence = 0;
    WallTime failed_at{};
  };

  // Loads the newest rows of the table. Damaged ones are skipped: measuring again is always right.
  Status Load(Connection& connection, ConditionsTable& conditions);
  // Newest first.
  std::vector<Entry> Find(std::uint64_t hash) const;

  // ---- for the writer, in a transaction ----
  Status Add(Connection& connection, ConditionsId conditions, const looptree::TreeKey& tree,
             const Entry& entry);
  // The rows that may have been added since.
  static Result<IdRange> RangeSince(Connection& connection, WallTime since);
  // Removes failures in the range that this worker's drift may have caused. Flush their outcomes
  // first.
  Status Suspect(Connection& connection, const ResultsSuspected& suspected, IdRange range);
  // Removes the failure that this outcome is, if it is a known one.
  Status Doubt(Connection& connection, BatchId batch, std::uint64_t sequence);
  // Removes those that outcomes of this batch from `first_sequence` on are; returns how many.
  Result<std::uint32_t> RemoveFrom(Connection& connection, BatchId batch,
                                   std::uint64_t first_sequence);
  void Publish();  // the transaction is durable
  void Forget();   // the transaction was rolled back

 private:
  void Remember(const Entry& entry);  // mutex_ is held

  using Place = std::pair<BatchId, std::uint64_t>;  // of the outcome

  std::vector<Entry> added_;  // writer only
  std::set<Place> removed_;   // writer only; may be among added_
  mutable std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, Entry> entries_;  // guarded by mutex_
  std::deque<std::uint64_t> oldest_;  // guarded by mutex_; hashes, oldest entry first
};

}  // namespace loopfleet::storage
