#pragma once
// CompiledTree: a loop tree compiled and linked into this process, with its own buffers. For
// benchmarks of the compiler alone, without a worker.

#include <memory>
#include <vector>

#include "bench/rigs/aligned_buffer.h"
#include "common/base/result.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/thread_pool.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/linker.h"

namespace loopfleet::bench {

struct Toolchain {
  std::unique_ptr<worker::CpuCompiler> compiler;
  std::unique_ptr<worker::Linker> linker;
};
Result<Toolchain> MakeToolchain(worker::CpuIsa isa = worker::CpuIsa::kHost);

// Inputs of small integers, and the program's outputs for them.
struct Expected {
  explicit Expected(const looptree::Program& program);

  std::vector<looptree::Tensor> inputs;
  looptree::Reference reference;
};

class CompiledTree {
 public:
  // Compiles, links, runs once and compares: kCorrupt if the outputs differ. Parallel loops run on
  // all threads of `pool`; null: serially.
  static Result<CompiledTree> Make(Toolchain& tools, const looptree::LoopTree& tree,
                                   const Expected& expected, const ThreadPool* pool = nullptr);

  void Run() { function_(pointers_.data()); }

 private:
  std::unique_ptr<worker::LinkedKernel> linked_;
  KernelFunction function_ = nullptr;
  std::vector<Buffer> buffers_;
  std::vector<float*> pointers_;
};

}  // namespace loopfleet::bench
