#pragma once
// KernelServer: answers requests of `loopfleet-worker serve` with the children of one preparing
// thread. Belongs to one thread.

#include <cstdint>
#include <expected>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/serve_message.h"
#include "worker/child_programs.h"
#include "worker/serve/known_code.h"
#include "worker/verification/code_arena.h"
#include "worker/verification/guarded_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

class KernelServer {
 public:
  struct Parts {
    PreparerChildren& children;
    CodeArena& code;
    KnownCode& known;
  };
  explicit KernelServer(const Parts& parts);

  ServeReply Answer(const ServeRequest& request);
  // `memory`: the descriptor that came with the request; -1: none.
  IsolatedRunReply Answer(const IsolatedRunRequest& request, int memory);

 private:
  // Code in its place, kept for further runs.
  struct Loaded {
    looptree::LoopTree tree;
    std::string code_hash;
    CodeArena::Place place;
    Kernel kernel;
    std::uint64_t entry = 0;
  };
  std::expected<Loaded, Failure> Load(const looptree::LoopTree& tree, std::uint32_t threads);
  std::expected<Loaded*, Failure> FindLoaded(const IsolatedRunRequest& request);
  std::expected<std::shared_ptr<GuardedBuffers>, Failure> BuffersFor(const Kernel& kernel,
                                                                     const Workload& workload);
  struct Judged {
    Verified verified = Verified::kRight;
    std::string remark;
  };
  // kCompileError: the code that it would run is not the one with this hash.
  std::expected<Judged, Failure> Verify(const looptree::LoopTree& tree, std::uint32_t threads,
                                        const std::string& code_hash);
  // Runs the kernel between guard pages and compares.
  std::expected<void, Failure> RunAndCheck(const KernelCall& call,
                                           std::span<const ExpectedTensor> expected);

  const Parts parts_;
  WorkloadCache workloads_;
  GuardedBufferPool buffers_{{}};
  std::list<std::pair<std::string, Loaded>> loaded_;  // by IR text, the last used first
};

}  // namespace loopfleet::worker
