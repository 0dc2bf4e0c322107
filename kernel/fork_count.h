#pragma once
// ForkCount: how often this process, and those that it was forked from, called fork(). Parent and
// child both count it. A class whose memory the two share compares the count with that of its last
// write (kernel/local_kernels.h).

#include <cstdint>

namespace loopfleet {

// Counts from its first call on. Any thread.
std::uint64_t ForkCount();

}  // namespace loopfleet
