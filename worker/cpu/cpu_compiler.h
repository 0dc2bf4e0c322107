#pragma once
// CpuCompiler: compiles a loop tree to an object file for a CPU, in one tier, by the rules of
// docs/LOWERING.md. The same tree always gives the same bytes.
//
// Construction takes some milliseconds, compiling a tree one or two, so keep the object. Used by
// one thread. A process that holds one may fork: LLVM starts no threads here.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/result.h"
#include "common/job/hardware_facts.h"
#include "kernel/kernel.h"
#include "worker/isa/isa_support.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

// Changes whenever the code made for some tree may change: stored results are looked up by it.
inline constexpr const char* kLoweringRevision = "cpu-10";

struct CpuCompilerOptions {
  CpuIsa isa = CpuIsa::kHost;
  PlanLimits limits;                        // its `threads` is ignored: CompileOptions has it
  std::optional<std::int64_t> cache_bytes;  // overrides the last-level cache size, for tests
  std::size_t object_cache_bytes = 0;       // modules and their objects; 0: no cache
};

class CpuCompiler final : public Compiler {
 public:
  // Fails if this build of LLVM has no code generator for the processor.
  static Result<std::unique_ptr<CpuCompiler>> Create(const CpuCompilerOptions& options = {});
  ~CpuCompiler() override;

  std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                         const CompileOptions& options = {}) override;

  // The LLVM IR that Compile makes the object from, and the object as assembly. For people and
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

// LLVM's version, the tier and the revision. Stored results are looked up by these.
CompilerFacts CpuCompilerFacts();

}  // namespace loopfleet::worker
