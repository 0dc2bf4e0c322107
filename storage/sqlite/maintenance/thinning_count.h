#pragma once
// CountThinning: what a pass of thinning would remove.

#include <filesystem>

#include "common/base/result.h"
#include "storage/sqlite/maintenance/thinning.h"

namespace loopfleet::storage {

// Counts for a pass over all results. Changes nothing; a coordinator may be writing meanwhile.
//   kNotFound, kInvalid (not a loopfleet database, or of another version), kCorrupt, kSystem
Result<ThinningCount> CountThinning(const std::filesystem::path& path, const ThinningRule& rule);

}  // namespace loopfleet::storage
