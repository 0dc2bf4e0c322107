#pragma once
// KernelRunner: compiles a tree, runs it in this process and says what, if anything, is wrong with
// what it did (tests/unit/worker/lowering/guarded_run.h).

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/linker.h"
#include "worker/verification/thread_pool.h"

namespace loopfleet::worker {

class KernelRunner {
 public:
  explicit KernelRunner(CpuIsa isa);

  Kernel Compile(const looptree::LoopTree& tree);
  std::expected<Kernel, Failure> TryCompile(const looptree::LoopTree& tree,
                                            const CompileOptions& options = {}) {
    return compiler_->Compile(tree, options);
  }
  // Threads for kernels that want them: as many as the tests ever ask for.
  static constexpr std::uint32_t kThreads = 4;

  // Outputs of a run that starts from outputs and scratch full of NaN. Appends to `problems`.
  std::vector<looptree::Tensor> Run(const Kernel& kernel,
                                    const std::vector<looptree::Tensor>& inputs,
                                    std::string& problems);
  // What results are compared with: what the program means, or also the tree run loop by loop.
  enum class Oracles { kProgram, kBoth };
  // Empty if the tree, compiled and run, gives what the program means, or is refused for being
  // unrolled too far.
  std::string Check(const looptree::LoopTree& tree, std::uint64_t seed = 1,
                    Oracles oracles = Oracles::kProgram);
  int checked() const { return checked_; }  // trees that were not refused

 private:
  const ThreadPool pool_{{0, 1, 0, 1}};  // two on one core: they meet in every order
  std::unique_ptr<CpuCompiler> compiler_;
  std::unique_ptr<Linker> linker_;
  int checked_ = 0;
};

// One for each instruction set, made when it is first asked for: what compilers reuse between
// kernels is under test as well.
class KernelRunners {
 public:
  KernelRunner& For(CpuIsa isa) {
    std::unique_ptr<KernelRunner>& runner = runners_[isa];
    if (runner == nullptr) runner = std::make_unique<KernelRunner>(isa);
    return *runner;
  }

 private:
  std::map<CpuIsa, std::unique_ptr<KernelRunner>> runners_;
};

// True if this host can run code for `isa`.
bool HostRuns(CpuIsa isa);

}  // namespace loopfleet::worker
