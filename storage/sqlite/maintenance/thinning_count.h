#pragma once
// What a pass of thinning would take away.

#include <filesystem>

#include "common/base/result.h"
#include "storage/sqlite/maintenance/thinning.h"

namespace loopfleet::storage {

// What a pass over everything would do. Changes nothing; a coordinator may be writing meanwhile.
//   kNotFound, kInvalid (not a loopfleet database, or of another version), kCorrupt, kSystem
Result<ThinningCount> CountThinning(const std::filesystem::path& path, const ThinningRule& rule);

}  // namespace loopfleet::storage
