#pragma once
// Profiler: makes the profile of one tree: has copies of its kernel compiled and verified, runs
// them on the timing slot beside the plain kernel, and reads what they counted, or samples the
// plain one. What runs here gives no figure. Used by one thread.

#include <chrono>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "common/job/profile.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/compile_message.h"
#include "worker/evaluation/profile_lines.h"
#include "worker/processes/executor_process.h"
#include "worker/verification/code_arena.h"

namespace loopfleet::worker {

// A kernel in its place, verified.
struct PlacedKernel {
  CompiledKernel compiled;
  CodeArena::Place code;
  KernelCall call;
};

class Profiler {
 public:
  struct Rules {
    double least_ticks = 4'000;  // of an entry of a loop that is counted
    double most_overhead = 0.05;
    // The plain kernel and the copy run in turns, so many times each, for at least so long. Short
    // turns: of many, some are not interrupted.
    std::size_t turns = 41;
    std::chrono::microseconds turn{500};
    std::chrono::milliseconds longest{200};  // no further turns after that, once there were three
    std::chrono::milliseconds sampling{200};
    std::chrono::microseconds between_samples{1000};
  };
  // What the pipeline lends.
  struct Parts {
    std::function<std::expected<PlacedKernel, Failure>(const Instrumentation&)> prepare;
    // Calls `use` while nothing else is on the slot.
    using Use = std::function<void(ExecutorProcess& profiler)>;
    std::function<std::expected<void, Failure>(const Use& use)> on_slot;
  };

  Profiler(const looptree::LoopTree& tree, const Rules& rules, Parts parts)
      : tree_(tree), rules_(rules), parts_(std::move(parts)) {}

  std::expected<Profile, Failure> Run(ProfileLevel level);

 private:
  // What the copy with probes around the roots and `loops` counted.
  struct Counted {
    std::vector<ProbeSite> sites;
    std::vector<ProbeReading> readings;
    double overhead = 0;
    double run_ns = 0;  // of the plain kernel
  };
  // `plain` runs in the memory of the copy, on its inputs: a profile holds memory for one kernel,
  // so that no two wait for each other's.
  std::expected<Counted, Failure> Count(const PlacedKernel& plain,
                                        const std::set<looptree::TreeRef>& loops);
  std::expected<Profile, Failure> RunLoops(ProfileLevel level);
  std::set<looptree::TreeRef> LongLoops(const Counted& counted,
                                        std::set<looptree::TreeRef> loops) const;
  std::expected<Profile, Failure> RunLines();

  const looptree::LoopTree& tree_;
  const Rules rules_;
  const Parts parts_;
};

}  // namespace loopfleet::worker
