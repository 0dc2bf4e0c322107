#pragma once
// ReadNewestOutcomes: StoreReader::NewestOutcomes. Does not verify checksums.

#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "storage/brief_outcome.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

Result<std::vector<BriefOutcome>> ReadNewestOutcomes(Connection& connection, std::uint32_t max);

}  // namespace loopfleet::storage
