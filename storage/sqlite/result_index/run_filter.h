#pragma once
// Filters over the hashes of a part of a run (storage/sqlite/result_index/sorted_run.h): whether it
// may contain a hash. The words of a filter are stored with its part.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/sqlite/result_index/result_hash.h"

namespace loopfleet::storage {

// A blocked Bloom filter with 24 bits for each key: about 1 false positive in 10,000. (With 16
// bits, as before version 13, 1 in 1,000: among 100 million results each look-up read a page in
// vain.)
using RunFilter = std::vector<std::uint64_t>;
RunFilter NewFilter(std::size_t keys);
void AddTo(RunFilter& filter, ResultHash hash);
bool MayContain(const RunFilter& filter, ResultHash hash);
// Fetches into the cache what MayContain() reads.
void Prefetch(const RunFilter& filter, ResultHash hash);

}  // namespace loopfleet::storage
