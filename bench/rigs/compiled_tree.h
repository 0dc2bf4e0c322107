#pragma once
// CompiledTree: a loop tree as code in this process with buffers of its own, ready to run: for
// benchmarks of the compiler, without a worker round it.

#include <memory>
#include <vector>

#include "bench/rigs/aligned_buffer.h"
#include "common/base/result.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/linker.h"
#include "worker/verification/thread_pool.h"

namespace loopfleet::bench {

struct Toolchain {
  std::unique_ptr<worker::CpuCompiler> compiler;
  std::unique_ptr<worker::Linker> linker;
};
Result<Toolchain> MakeToolchain(worker::CpuIsa isa = worker::CpuIsa::kHost);

// Inputs of small integers, and what a program makes of them.
struct Expected {
  explicit Expected(const looptree::Program& program);

  std::vector<looptree::Tensor> inputs;
  looptree::Reference reference;
};

class CompiledTree {
 public:
  // Compiles, links, runs once and compares: kCorrupt if the outputs differ.
  // `pool`: what its parallel loops run on, all of it; null: they are serial.
  static Result<CompiledTree> Make(Toolchain& tools, const looptree::LoopTree& tree,
                                   const Expected& expected,
                                   const worker::ThreadPool* pool = nullptr);

  void Run() { function_(pointers_.data()); }

 private:
  std::unique_ptr<worker::LinkedKernel> linked_;
  worker::KernelFunction function_ = nullptr;
  std::vector<Buffer> buffers_;
  std::vector<float*> pointers_;
};

}  // namespace loopfleet::bench
