#pragma once
// CountPruning: what a pass of pruning would remove.

#include <filesystem>

#include "common/base/result.h"
#include "storage/sqlite/maintenance/pruning.h"

namespace loopfleet::storage {

// Changes nothing; a coordinator may be writing meanwhile. Damaged rows are not told apart.
//   kNotFound, kInvalid (not a loopfleet database, or of another version), kCorrupt, kSystem
Result<PruningCount> CountPruning(const std::filesystem::path& path, const PruningRule& rule);

}  // namespace loopfleet::storage
