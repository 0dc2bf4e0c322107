#pragma once
// CountThinning: StoreReader::CountThinning.

#include "common/base/result.h"
#include "storage/sqlite/sqlite.h"
#include "storage/thinning.h"

namespace loopfleet::storage {

Result<ThinningCount> CountThinning(Connection& connection, const ThinningRule& rule);

}  // namespace loopfleet::storage
