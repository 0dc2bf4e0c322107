#pragma once
// TimedParts: the parts of the report that measure, each compared with a peer or a goal.

#include "tests/gpu/device_bench.h"
#include "tests/gpu/options.h"

namespace loopfleet::worker {

// Times fixed schedules, warm and cold, and compares them with copies within the device's memory.
void RunTiming(const DeviceBench& bench, const Options& options);
// Profiles two products under a root each, and compares shares and total with those timed alone.
void RunProfile(const DeviceBench& bench, const Options& options);
// Compares the best schedules of matrix products found within a time with cuBLAS.
void RunSearch(const DeviceBench& bench, const Options& options);
// Repeats the same measurements and reports how far they differ.
void RunRepeats(const DeviceBench& bench, const Options& options);

}  // namespace loopfleet::worker
