#pragma once
// ForkCount: how often this process, and those that it was forked from, called fork(). Parent and
// child both count it. Whoever has memory that the two share, or threads that only the parent has,
// compares it with what it was.

#include <cstdint>

namespace loopfleet {

// Counts from its first call on. Any thread.
std::uint64_t ForkCount();

}  // namespace loopfleet
