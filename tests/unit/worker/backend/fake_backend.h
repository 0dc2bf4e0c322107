#pragma once
// A backend without LLVM, for point-wise additions. Its kernels are functions of the test binary,
// which real children run; the number of elements selects what goes wrong.

#include <cstdint>

#include "common/looptree/datasets/benchmark.h"
#include "worker/backend/backend.h"

namespace loopfleet::worker {

enum class Fault : std::int64_t {
  kWrongOutput = 67,
  kCrash = 71,  // SIGSEGV
  kHang = 73,
  kCompilerCrash = 79,
  kCompilerWornOut = 181,  // the compiler crashes, unless it is its first compilation
  kCompilerHang = 83,
  kCompilerBomb = 89,  // allocates without end
  kExit = 97,          // _exit(0)
  kJunk = 101,         // writes to the channel
  kBeside = 103,       // right, but writes one element too many
  kRightOnce = 107,    // computes on its first call only
  kWritesInput = 109,
  kIllegal = 113,       // SIGILL
  kCompilerJunk = 127,  // a kernel with other buffers
  kBomb = 131,          // allocates without end
  kRefused = 137,       // UNSUPPORTED
  kNotLinkable = 139,
  kLastElementLeft = 149,
  kWholeNumbersOnly = 199,     // drops the fraction of what it reads
  kWholeNumbersSlowly = 61,    // the same, and takes 60 ms
  kPageBeside = 157,           // right, but writes one element a page before
  kLongCode = 163,             // more code than its place takes
  kHugeScratch = 167,          // 2 TiB
  kForgedThenLoop = 173,       // right, forges the reply to request 1, then hangs
  kBoasts = 179,               // forges the reply to request 1: busy for centuries
  kWritesElsewhere = 197,      // writes into the output of its call before, if that is another one
  kForgesTimeThenLoops = 193,  // right, forges the timing reply to request 1, then hangs
  kSlow = 191,                 // right, takes 30 ms
  kLies = 151,  // on its second call: claims samples longer than the time that passed
};

Backend FakeBackend();
// The code that its compiler and linker make for an addition of so many elements, at any address.
CodeImage FakeCode(std::int64_t elements);
looptree::Benchmark AddOf(std::int64_t elements);
inline looptree::Benchmark AddOf(Fault fault) { return AddOf(static_cast<std::int64_t>(fault)); }
std::string AddUri(std::int64_t elements);

}  // namespace loopfleet::worker
