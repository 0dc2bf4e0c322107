#pragma once
// RunCatalog: which sorted runs a database has, and what is left of merges.

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "common/base/result.h"
#include "storage/sqlite/result_index/sorted_run.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

// Runs of level 0 hold new entries, those of the next level as many as 16 of them, and so on. Runs
// of the last level are not merged.
inline constexpr std::size_t kRunLevels = 4;

struct RunCatalog {
  SortedRuns runs;
  // Parts of merged runs that are not whole, by level and hash.
  std::vector<PartNumber> begun;
  // Parts whose entries are in a merged run.
  std::vector<PartNumber> retired;
  // The newest part of each level, its first number - 1 without any. Some number changes whenever
  // the runs do.
  std::array<PartNumber, kRunLevels> newest{};

  // Reads the parts of the runs that are not in `known`.
  // kCorrupt: a row is damaged. `loaded` then has the runs that are older than it, and nothing
  // else.
  static Status Load(Connection& connection, const SortedRuns& known, RunCatalog& loaded);
  static Result<std::array<PartNumber, kRunLevels>> NewestParts(Connection& connection);
};

}  // namespace loopfleet::storage
