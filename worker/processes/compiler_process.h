#pragma once
// CompilerProcess: the daemon's handle on a compiler child. Whatever happens to the child, Compile
// ends with a kernel or a Failure, and the next call has a working child again. A child that ends
// is given one try more with a new one, unless it was new: what it compiled before may have damaged
// it. Each try has the limit; one that took it all is the last. Belongs to one thread.

#include <chrono>
#include <expected>
#include <functional>
#include <optional>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/backend/kernel.h"
#include "worker/processes/child_message.h"
#include "worker/sandbox/exit_reason.h"
#include "worker/sandbox/fork_server.h"
#include "worker/verification/code_arena.h"

namespace loopfleet::worker {

// Told of each child that has to be replaced.
using RestartListener = std::function<void(ChildRole, ExitReason::Cause)>;

class CompilerProcess {
 public:
  CompilerProcess(ForkServer& fork_server, std::chrono::milliseconds limit,
                  RestartListener on_restart);

  // Starts the child if there is none.
  Status EnsureChild();
  // The code is linked for `place`, and not in it yet.
  std::expected<CompiledKernel, Failure> Compile(const looptree::LoopTree& tree,
                                                 const CodeArena::Place& place,
                                                 const CompileOptions& options = {});
  // For code that has no place in memory of this host: at most `max_code_bytes` of it.
  std::expected<CompiledKernel, Failure> Compile(const looptree::LoopTree& tree,
                                                 std::uint64_t max_code_bytes);

 private:
  std::expected<CompiledKernel, Failure> Ask(const looptree::LoopTree& tree,
                                             const CompileRequest& request);
  // One try: what the child answered, or how it ended.
  std::expected<CompileReply, ExitReason> TryToAsk(const CompileRequest& request);

  ForkServer& fork_server_;
  const std::chrono::milliseconds limit_;
  const RestartListener on_restart_;
  std::optional<ChildProcess> child_;
  bool has_answered_ = false;  // this child
};

// The failure of a kernel that is not one for `program`: a compiler that answers with other buffers
// than the program has cannot be trusted with where the kernel will write.
std::optional<Failure> CheckBuffers(const Kernel& kernel, const looptree::Program& program);

}  // namespace loopfleet::worker
