#pragma once
// CountPruning: StoreReader::CountPruning.

#include "common/base/result.h"
#include "storage/pruning.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

Result<PruningCount> CountPruning(Connection& connection, const PruningRule& rule);

}  // namespace loopfleet::storage
