#pragma once
// KnownFailures: verdicts of workers on trees that failed, and where the outcomes are stored. So a
// kernel that hangs does not take its ten seconds of a timing slot once for each job. A failure
// answers for the full tuple, as a result does; a CUT for its bound and for lower ones.
//
// Whether they answer: storage/settled_failure.h.
//
// In memory: the newest kMost verdicts, about 200 bytes each; rows of earlier ones stay in the
// table. Any thread may read; only the writer adds and publishes.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "storage/record.h"
#include "storage/sqlite/id_range.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"

namespace loopfleet::storage {

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
    Witness witness;
  };

  // Loads the newest rows of the table. Damaged ones are skipped: measuring again is always right.
  Status Load(Connection& connection, ConditionsTable& conditions);
  // Newest first.
  std::vector<Entry> Find(std::uint64_t hash) const;

  // ---- for the writer, in a transaction ----
  Status Add(Connection& connection, ConditionsId conditions, const SubjectKey& tree,
             const Entry& entry);
  // The rows that may have been added since.
  static Result<IdRange> RangeSince(Connection& connection, WallTime since);
  // Removes this worker's verdicts in the range.
  Status Suspect(Connection& connection, const ResultsSuspected& suspected, IdRange range);
  // Removes the verdicts on the job with this outcome.
  Status Doubt(Connection& connection, BatchId batch, std::uint64_t sequence);
  // Removes those that outcomes of this batch from `first_sequence` on are; returns how many.
  Result<std::uint32_t> RemoveFrom(Connection& connection, BatchId batch,
                                   std::uint64_t first_sequence);
  // Removes the verdicts that the filter names; returns their number.
  Result<std::uint64_t> Remove(Connection& connection, const FailureFilter& filter);
  void Publish();  // the transaction is durable
  void Forget();   // the transaction was rolled back

 private:
  void Remember(const Entry& entry);  // mutex_ is held

  using Row = std::tuple<BatchId, std::uint64_t, std::string>;  // outcome, worker
  static Row RowOf(const Entry& entry) {
    return {entry.batch, entry.sequence, entry.witness.worker};
  }
  // Runs a DELETE that returns batch, sequence and worker of each row.
  Result<std::uint64_t> RunRemoval(Query query);

  std::vector<Entry> added_;  // writer only
  std::set<Row> removed_;     // writer only; may be among added_
  mutable std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, Entry> entries_;  // guarded by mutex_
  std::deque<std::uint64_t> oldest_;  // guarded by mutex_; hashes, oldest entry first
};

}  // namespace loopfleet::storage
