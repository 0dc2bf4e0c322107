#pragma once
// GpuCompiler: compiles a loop tree to PTX by the rules of docs/LOWERING.md, "GPU". The same tree
// always gives the same text. Used by one thread.

#include <expected>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/gpu/codegen/gpu_arch.h"
#include "worker/gpu/codegen/gpu_kernel.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

// Changes whenever the code made for some tree may change: stored results are looked up by it.
inline constexpr const char* kGpuLoweringRevision = "gpu-7";

struct GpuCompilerOptions {
  GpuArch arch;  // of the device; the PTX is for PtxArchFor(arch)
  PlanLimits limits;
};

class GpuCompiler {
 public:
  // kUnavailable: this build of LLVM has no code generator for GPUs, or none for this device.
  static Result<std::unique_ptr<GpuCompiler>> Create(const GpuCompilerOptions& options);
  ~GpuCompiler();

  // Failure: LIMIT_FOOTPRINT.
  std::expected<GpuKernel, Failure> Compile(const looptree::LoopTree& tree);
  // The LLVM IR that the PTX is made from, for people.
  std::expected<std::string, Failure> CompileToIr(const looptree::LoopTree& tree);

 private:
  class Impl;
  explicit GpuCompiler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

CompilerFacts GpuCompilerFacts();

}  // namespace loopfleet::worker
