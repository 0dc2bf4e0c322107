#pragma once
// What a process has had of the processor so far, all its threads and the kernel's work for it.

#include <sys/types.h>

namespace loopfleet::bench {

// In steps of 10 ms; 0 when there is no such process.
double ProcessSeconds(pid_t pid);

}  // namespace loopfleet::bench
