#pragma once
// CompilerProcess: the daemon's handle on a compiler child. Whatever happens to the child, Compile
// returns a kernel or a Failure, and the next call starts a new child if it needs one. If a child
// that has compiled before ends, the compilation is tried again in a new child, as an earlier
// compilation may have damaged the old one. Each try has the whole limit; a try that times out is
// not repeated. Belongs to one thread.

#include <chrono>
#include <expected>
#include <functional>
#include <optional>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/kernel.h"
#include "worker/processes/child_message.h"
#include "worker/sandbox/exit_reason.h"
#include "worker/sandbox/fork_server.h"
#include "worker/verification/code_arena.h"

namespace loopfleet::worker {

// Called for each child that has to be replaced.
using RestartListener = std::function<void(ChildRole, ExitReason::Cause)>;

class CompilerProcess {
 public:
  CompilerProcess(ForkServer& fork_server, std::chrono::milliseconds limit,
                  RestartListener on_restart);

  // Starts the child if there is none.
  Status EnsureChild();
  // Links the code for `place` without writing it there.
  std::expected<CompiledKernel, Failure> Compile(const looptree::LoopTree& tree,
                                                 const CodeArena::Place& place,
                                                 const CompileOptions& options = {});
  // For code that gets no place in this host's memory: at most `max_code_bytes` of it.
  std::expected<CompiledKernel, Failure> Compile(const looptree::LoopTree& tree,
                                                 std::uint64_t max_code_bytes);
  // For another process, whose place and outside functions `request` names. Its IR text is
  // `tree`'s.
  std::expected<CompiledKernel, Failure> CompileFor(const looptree::LoopTree& tree,
                                                    const CompileRequest& request);

 private:
  std::expected<CompiledKernel, Failure> Ask(const looptree::LoopTree& tree,
                                             const CompileRequest& request);
  // One try: the child's reply, or why it ended.
  std::expected<CompileReply, ExitReason> TryRequest(const CompileRequest& request);

  ForkServer& fork_server_;
  const std::chrono::milliseconds limit_;
  const RestartListener on_restart_;
  std::optional<ChildProcess> child_;
  bool has_answered_ = false;  // the current child has answered a request
};

}  // namespace loopfleet::worker
