#pragma once
// KernelRunner: compiles a tree, runs it in this process and reports what was wrong with the run
// (tests/unit/worker/lowering/guarded_run.h). Used by one thread.

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/thread_pool.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/linker.h"

namespace loopfleet::worker {

class KernelRunner {
 public:
  explicit KernelRunner(CpuIsa isa);

  Kernel Compile(const looptree::LoopTree& tree);
  std::expected<Kernel, Failure> TryCompile(const looptree::LoopTree& tree,
                                            const CompileOptions& options = {}) {
    return compiler_->Compile(tree, options);
  }
  // Threads for parallel kernels: the most that the tests use.
  static constexpr std::uint32_t kThreads = 4;

  // The outputs of a run. Outputs and scratch are full of NaN before it. Appends to `problems`.
  std::vector<looptree::Tensor> Run(const Kernel& kernel,
                                    const std::vector<looptree::Tensor>& inputs,
                                    std::string& problems);
  // The oracles for the results: the program's reference, or the interpreted tree as well.
  enum class Oracles { kProgram, kBoth };
  // Empty if the compiled tree gives the reference result.
  std::string Check(const looptree::LoopTree& tree, std::uint64_t seed = 1,
                    Oracles oracles = Oracles::kProgram);
  int checked() const { return checked_; }  // trees that were compiled

 private:
  const ThreadPool pool_{{0, 1, 0, 1}};  // two threads per core, to vary their interleaving
  std::unique_ptr<CpuCompiler> compiler_;
  std::unique_ptr<Linker> linker_;
  int checked_ = 0;
};

// One runner per instruction set, created on first use and kept, so that state which compilers
// reuse between kernels is tested as well.
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
