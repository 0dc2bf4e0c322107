#pragma once
// The processor time of a process so far: all its threads, user and system.

#include <sys/types.h>

namespace loopfleet::bench {

// Seconds, in steps of 10 ms; 0 if the process does not exist.
double ProcessSeconds(pid_t pid);

}  // namespace loopfleet::bench
