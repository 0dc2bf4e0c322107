#pragma once
// A backend without LLVM, for point-wise additions: its kernels are functions of the test itself,
// and the number of elements chooses what goes wrong. Real children run them.

#include <cstdint>

#include "common/looptree/datasets/benchmark.h"
#include "worker/backend/backend.h"

namespace loopfleet::worker {

enum class Fault : std::int64_t {
  kWrongOutput = 67,
  kCrash = 71,  // SIGSEGV
  kHang = 73,
  kCompilerCrash = 79,
  kCompilerWornOut = 181,  // its compiler crashes, unless it is the first that this one makes
  kCompilerHang = 83,
  kCompilerBomb = 89,  // allocates without end
  kExit = 97,          // _exit(0)
  kJunk = 101,         // writes to the channel
  kBeside = 103,       // right, and one element more
  kRightOnce = 107,    // computes on its first call only
  kWritesInput = 109,
  kIllegal = 113,       // SIGILL
  kCompilerJunk = 127,  // a kernel with other buffers
  kBomb = 131,          // allocates without end
  kRefused = 137,       // UNSUPPORTED
  kNotLinkable = 139,
  kLastElementLeft = 149,
  kPageBeside = 157,      // right, and one element a page before
  kLongCode = 163,        // more code than its place takes
  kHugeScratch = 167,     // 2 TiB
  kForgedThenLoop = 173,  // right, answers in its child's place (the first request), and hangs
  kBoasts = 179,  // when it is timed: answers (the first request) that it was busy for centuries
  kForgesTimeThenLoops = 193,  // right; when it is timed: answers (the first request), and hangs
  kSlow = 191,                 // right, and takes 30 ms
  kLies = 151,                 // claims batches that took longer than the time that passed
};

Backend FakeBackend();
// What its compiler and linker make of an addition of so many elements, for any address.
CodeImage FakeCode(std::int64_t elements);
looptree::Benchmark AddOf(std::int64_t elements);
inline looptree::Benchmark AddOf(Fault fault) { return AddOf(static_cast<std::int64_t>(fault)); }
std::string AddUri(std::int64_t elements);

}  // namespace loopfleet::worker
