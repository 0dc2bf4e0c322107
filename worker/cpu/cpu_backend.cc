#include "worker/cpu/cpu_backend.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/linker.h"

namespace loopfleet::worker {
namespace {

// Enough for a few thousand kernels.
constexpr std::size_t kObjectCacheBytes = std::size_t{64} << 20;

std::unique_ptr<Compiler> MakeCompiler() {
  auto compiler = CpuCompiler::Create({.object_cache_bytes = kObjectCacheBytes});
  LF_CHECK(compiler.has_value(), "{}", compiler.error().message);
  return *std::move(compiler);
}

std::unique_ptr<CodeLinker> MakeLinker() { return std::make_unique<Linker>(); }

}  // namespace

Backend CpuBackend() {
  return {.compiler = CpuCompilerFacts(), .make_compiler = MakeCompiler, .make_linker = MakeLinker};
}

}  // namespace loopfleet::worker
