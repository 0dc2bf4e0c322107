#pragma once
// LoadLatency: how long a load takes whose address depends on the load before it.

#include <cstddef>
#include <optional>

#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

// Nanoseconds of one load, from a chain through all cache lines of a block of `bytes` in random
// order, so that no prefetcher helps. The quickest of some passes. Blocks beyond the reach of the
// TLB include its misses. Those of 50 MiB and more are read from memory, even where a cache would
// hold them. nullopt: the memory cannot be allocated.
std::optional<double> LoadLatencyNs(const Stopwatch& stopwatch, std::size_t bytes);

}  // namespace loopfleet::worker
