#pragma once
// CpuCompiler: a loop tree into an object file for a CPU, in one tier: what each tree becomes is
// written in docs/LOWERING.md. The same tree always gives the same bytes.
//
// Making one costs some milliseconds, compiling a tree one or two: keep it. One object belongs to
// one thread; a process may fork with one in it, as LLVM starts no threads here.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/result.h"
#include "common/job/hardware_facts.h"
#include "worker/backend/kernel.h"
#include "worker/cpu/cpu_isa.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

// Changes whenever the code made for some tree may change: stored results are looked up by it.
inline constexpr const char* kLoweringRevision = "cpu-5";

struct CpuCompilerOptions {
  CpuIsa isa = CpuIsa::kHost;
  PlanLimits limits;                        // but for its threads: each kernel has its own
  std::optional<std::int64_t> cache_bytes;  // instead of the host's last-level cache: for tests
  std::size_t object_cache_bytes = 0;       // of modules and what they became; 0: none are kept
};

class CpuCompiler final : public Compiler {
 public:
  // Fails if this build of LLVM has no code generator for the processor.
  static Result<std::unique_ptr<CpuCompiler>> Create(const CpuCompilerOptions& options = {});
  ~CpuCompiler() override;

  std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                         const CompileOptions& options = {}) override;

  // The LLVM IR that Compile makes the object from, and the object as assembly: for people and
  // tests.
  std::expected<std::string, Failure> CompileToIr(const looptree::LoopTree& tree,
                                                  const CompileOptions& options = {});
  std::expected<std::string, Failure> CompileToAssembly(const looptree::LoopTree& tree,
                                                        const CompileOptions& options = {});

 private:
  class Impl;
  explicit CpuCompiler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// LLVM's version, the tier and the revision: what a stored result is looked up by.
CompilerFacts CpuCompilerFacts();

}  // namespace loopfleet::worker
