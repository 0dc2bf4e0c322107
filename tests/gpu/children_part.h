#pragma once
// ChildrenPart: the children of a GPU worker, as it confines them, on a device: compilers that may
// open nothing, and one that has the driver under limits. What they were made for is that whatever
// the real libraries do, they can do it there.

#include "tests/gpu/options.h"
#include "tests/gpu/report.h"

namespace loopfleet::worker {

// This process must have one thread, and no driver.
void RunChildren(Report& report, const Options& options);

}  // namespace loopfleet::worker
