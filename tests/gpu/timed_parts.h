#pragma once
// TimedParts: the parts of the report that are figures, each beside a peer or a goal.

#include "tests/gpu/device_bench.h"
#include "tests/gpu/options.h"

namespace loopfleet::worker {

// Fixed schedules, warm and cold, beside copies within the device's memory.
void RunTiming(const DeviceBench& bench, const Options& options);
// The best schedules of matrix products found in a time, beside cuBLAS.
void RunSearch(const DeviceBench& bench, const Options& options);
// One measurement again and again.
void RunRepeats(const DeviceBench& bench, const Options& options);

}  // namespace loopfleet::worker
