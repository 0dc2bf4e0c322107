#pragma once
// PruningTable: runs a pass that removes old batches (storage/pruning.h) and
// keeps one row for each pass that removed anything: by which rule, and how much.

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/pruning.h"
#include "storage/sqlite/result_index/known_failures.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/batch_table.h"
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/outcome_table.h"

namespace loopfleet::storage {

class PruningTable {
 public:
  // Where the rows of a batch are.
  struct Tables {
    BatchTable& batches;
    JobTable& jobs;
    OutcomeTable& outcomes;
    KnownFailures& failures;
  };
  PruningTable(Connection& connection, const Tables& tables)
      : connection_(connection), tables_(tables) {}

  // Runs the next step of the pass in the current transaction: examines at most kBatchesPerStep
  // batches and removes about kRowsPerStep rows, of jobs kBytesPerStep and one job more. When no
  // batch is left, and the file can shrink (auto_vacuum), the next steps return its unused pages to
  // the disk, kPagesPerStep each.
  // kCorrupt: a page that the rows are on cannot be read.
  Status Step(Pruning& pass, WallTime now);

  static constexpr std::uint32_t kBatchesPerStep = 512;
  static constexpr std::uint32_t kRowsPerStep = 512;
  static constexpr std::size_t kBytesPerStep = 1 << 20;
  static constexpr std::uint32_t kPagesPerStep = 256;
  // A pass ends after this many batches in a row that were accepted too late to be old: numbers
  // ascend with time, unless a clock was set. Those of a clock that was ahead do not count.
  static constexpr std::uint32_t kTooNewInRow = 1000;

 private:
  // What a step may still remove.
  struct Room {
    std::uint32_t rows = kRowsPerStep;
    std::size_t bytes = kBytesPerStep;
    bool is_full() const { return rows == 0 || bytes == 0; }
  };

  Status Begin(Pruning& pass, WallTime now);
  Status Remove(Pruning& pass, WallTime now);
  // Examines the next batch. If it is old, removes its own row.
  Status Examine(Pruning& pass, WallTime now);
  Result<bool> IsOld(const Pruning& pass, const StoredBatch& batch);
  // Removes rows of the batch that the pass is at. True: none is left.
  Result<bool> RemoveRows(Pruning& pass, Room& room);
  Status Shrink(Pruning& pass);
  Status Save(const Pruning& pass, WallTime now);

  Connection& connection_;
  Tables tables_;
};

// StoreReader::CountPruning.
Result<PruningCount> CountPruning(Connection& connection, const PruningRule& rule);

}  // namespace loopfleet::storage
