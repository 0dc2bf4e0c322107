#pragma once
// ChildrenPart: runs the children of a GPU worker on a device, confined as in a worker: compilers
// that may open nothing, and the device child under its limits. Shows that the real libraries work
// under this confinement.

#include "tests/gpu/options.h"
#include "tests/gpu/report.h"

namespace loopfleet::worker {

// The calling process must have one thread, and no open driver.
void RunChildren(Report& report, const Options& options);

}  // namespace loopfleet::worker
