#pragma once
// ReferenceProcess: the daemon's handle on a reference child. Whatever the program, Compute ends by
// its limit. Belongs to one thread.

#include <chrono>
#include <expected>
#include <functional>
#include <optional>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/processes/compiler_process.h"
#include "worker/sandbox/fork_server.h"
#include "worker/verification/input_draw.h"
#include "worker/verification/shared_memory.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

class ReferenceProcess {
 public:
  ReferenceProcess(ForkServer& fork_server, std::chrono::milliseconds limit,
                   RestartListener on_restart);

  // Starts the child if there is none.
  Status EnsureChild();
  // Has the child compute it. UNSTABLE_TIMING if it takes too long, which depends on the load of
  // the host. UNSUPPORTED if no inputs would tell right outputs from wrong ones, as nothing is
  // timed unverified.
  std::expected<std::vector<bool>, Failure> Compute(const looptree::LoopTree& tree, InputSeed seed,
                                                    const SharedMemory& inputs,
                                                    const SharedMemory& reference);
  ReferenceMaker Maker() { return std::bind_front(&ReferenceProcess::Compute, this); }

 private:
  std::unexpected<Failure> Replaced(const ExitReason& end);

  ForkServer& fork_server_;
  const std::chrono::milliseconds limit_;
  const RestartListener on_restart_;
  std::optional<ChildProcess> child_;
};

}  // namespace loopfleet::worker
