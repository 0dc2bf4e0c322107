#pragma once
// Compaction: merges sorted runs, a bounded piece in each transaction of the writer, so that
// look-ups ask few runs. What it writes keeps pace with the entries that are added; the smallest
// runs come first. Merged runs are removed when no look-up reads them any more.
//
// Damage in a run ends the merging of its level until the next start.

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>

#include "common/base/result.h"
#include "storage/sqlite/result_index/run_catalog.h"
#include "storage/sqlite/result_index/run_merge.h"
#include "storage/sqlite/result_index/sorted_run.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class Compaction {
 public:
  // `part_entries`: of a part of a merged run, as many as a run of level 0 has.
  explicit Compaction(std::size_t part_entries);

  // Goes on with what an earlier program began.
  Status Resume(Connection& connection, const RunCatalog& catalog);
  void CountAdded(std::size_t entries) { owed_entries_ += kMergedPerEntry * entries; }

  // In a transaction: writes and removes some chunks. `runs`: all that are durable, oldest first.
  Status Step(Connection& connection, const SortedRuns& runs);
  // The transaction is durable: puts merged runs in the place of the others. False: none is new.
  bool Commit(SortedRuns& runs);
  void Rollback();

 private:
  // Each entry is written again once for each level: twice up to 1,074 million entries. The third
  // pays for what earlier versions left.
  static constexpr std::size_t kMergedPerEntry = 3;

  // The chunks of a part stay while a look-up may read them.
  struct Retired {
    PartNumber number;
    std::weak_ptr<const RunPart> part;
  };

  void Begin(std::size_t level, const SortedRuns& runs);
  Result<std::size_t> StepLevel(Connection& connection, std::size_t level, std::size_t most);
  Status End(Connection& connection, const RunMerge& merge);
  Status Remove(Connection& connection, std::size_t chunks);

  const std::size_t part_entries_;
  std::size_t owed_entries_ = 0;  // to be merged
  std::size_t paid_entries_ = 0;  // of them by the current transaction
  std::unique_ptr<Connection> source_;
  bool is_raised_ = false;                                      // writer.oldest_program
  std::array<std::optional<RunMerge>, kRunLevels - 1> merges_;  // of runs of this level
  std::array<bool, kRunLevels - 1> is_damaged_{};
  std::array<SortedRun::Parts, kRunLevels> begun_;
  std::array<PartNumber, kRunLevels> next_number_;
  std::deque<Retired> retired_;
  std::size_t removed_ = 0;  // of retired_, by the current transaction
};

}  // namespace loopfleet::storage
