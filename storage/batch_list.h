#pragma once
// The rule of StoreReader::ListBatches, for all engines.

#include <cstddef>
#include <vector>

#include "storage/record.h"

namespace loopfleet::storage {

// `newest`: the newest ones, `max` at most. `older`: unfinished ones from before them, max / 2 at
// most. Both the newest first. Older ones take the places of the oldest finished ones.
std::vector<StoredBatch> WithOlder(std::vector<StoredBatch> newest, std::vector<StoredBatch> older,
                                   std::size_t max);

}  // namespace loopfleet::storage
