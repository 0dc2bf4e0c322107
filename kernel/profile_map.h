#pragma once
// What a compiler adds to a kernel so that it can be profiled, and how to read what comes of it
// (docs/PROFILE.md). The code of a plain kernel does not depend on it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/job/profile.h"

namespace loopfleet {

// What to add.
struct Instrumentation {
  enum class Kind : std::uint8_t {
    kNone,
    kCounters,  // a copy that reads the clock around its roots and around `loops`
    kLines,     // the plain kernel, with the place of each instruction. UNSUPPORTED: noting them
                // would change its code
  };
  Kind kind = Kind::kNone;
  std::set<looptree::TreeRef> loops;  // kCounters: beside the roots
  friend bool operator==(const Instrumentation&, const Instrumentation&) = default;
};

// Where a copy can count, whether it does or not.
struct ProbeSite {
  ProfilePlace place;
  std::uint32_t parent = 0;  // index of the site around it; site 0 is the whole kernel
  double entries = 1;        // of one run, at most
  bool is_root = false;
  friend bool operator==(const ProbeSite&, const ProbeSite&) = default;
};
inline constexpr std::size_t kMostProbeSites = 512;

// Two cells of 8 bytes for each site, at the end of scratch: ticks of the clock, then entries. The
// caller sets them to 0 before the first run; runs add to them.
struct ProbeCells {
  std::uint64_t offset = 0;  // of the first cell in scratch, in bytes
  std::vector<ProbeSite> sites;
  friend bool operator==(const ProbeCells&, const ProbeCells&) = default;
};

// The instructions from `begin`, up to the next element's, belong to `place`.
struct CodeSpan {
  std::int64_t begin = 0;  // bytes from the start of the code (from the kernel's entry: a compiler)
  ProfilePlace place;
  friend bool operator==(const CodeSpan&, const CodeSpan&) = default;
};
inline constexpr std::size_t kMostCodeSpans = std::size_t{1} << 20;
inline constexpr std::size_t kMostLaunches = 4096;  // of a kernel on a GPU

struct ProfileMap {
  std::optional<ProbeCells> probes;  // kCounters
  std::vector<CodeSpan> spans;       // kLines, ascending
  // Operations that have no instructions of their own, and the one whose instructions do their
  // work.
  std::vector<std::pair<looptree::TreeRef, looptree::TreeRef>> fused;
  // Of a GPU, plain kernels too: by launch, the root of the tree that it runs for. A root's
  // launches follow each other.
  std::vector<looptree::TreeRef> launch_roots;
  friend bool operator==(const ProfileMap&, const ProfileMap&) = default;
};

}  // namespace loopfleet
