#pragma once
// ReadNewestOutcomes: StoreReader::NewestOutcomes. Does not verify checksums.

#include <cstddef>
#include <cstdint>

#include "common/base/result.h"
#include "storage/brief_outcome.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

// Ends with the outcome whose texts reach `max_bytes` together with those before it.
inline constexpr std::size_t kMostBriefBytes = std::size_t{32} << 20;
Result<BriefOutcomes> ReadNewestOutcomes(Connection& connection, std::uint32_t max,
                                         std::size_t max_bytes = kMostBriefBytes);

}  // namespace loopfleet::storage
