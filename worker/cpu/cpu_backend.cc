#include "worker/cpu/cpu_backend.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/linker.h"

namespace loopfleet::worker {
namespace {

std::unique_ptr<Compiler> MakeCompiler() {
  auto compiler = CpuCompiler::Create();
  LF_CHECK(compiler.has_value(), "{}", compiler.error().message);
  return *std::move(compiler);
}

}  // namespace

Backend CpuBackend() {
  // One linker for each process that loads kernels, made when it loads the first.
  auto linker = std::make_shared<std::unique_ptr<Linker>>();
  return {.compiler = CpuCompilerFacts(),
          .make_compiler = MakeCompiler,
          .load = [linker](std::string_view object) -> Result<std::unique_ptr<LoadedKernel>> {
            if (*linker == nullptr) {
              LF_TRY(*linker, Linker::Create());
            }
            LF_TRY(std::unique_ptr<LoadedKernel> kernel, (*linker)->Link(object));
            return kernel;
          }};
}

}  // namespace loopfleet::worker
