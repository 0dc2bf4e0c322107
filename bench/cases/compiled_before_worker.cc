// A worker for bench/cases/evaluations.cc that compiles each tree once and reuses the kernel. A
// second evaluation thus costs what it would with a compiler that takes no time. Linking, which
// every compiler needs, still happens each time.

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/looptree/text/text.h"
#include "worker/backend/backend.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/daemon.h"
#include "worker/gpu/device/gpu_machine.h"

namespace loopfleet::bench {
namespace {

class RememberingCompiler final : public Compiler {
 public:
  explicit RememberingCompiler(std::unique_ptr<Compiler> compiler)
      : compiler_(std::move(compiler)) {}

  std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                         const CompileOptions& options) override {
    const auto [place, is_new] = kernels_.try_emplace({looptree::IrTextOf(tree), options.threads});
    if (is_new) {
      auto kernel = compiler_->Compile(tree, options);
      if (!kernel) {
        kernels_.erase(place);
        return std::unexpected(std::move(kernel).error());
      }
      place->second = *std::move(kernel);
    }
    return place->second;
  }

 private:
  const std::unique_ptr<Compiler> compiler_;
  std::map<std::pair<std::string, std::uint32_t>, Kernel> kernels_;  // of a bounded corpus
};

worker::Backend RememberingBackend() {
  worker::Backend backend = worker::CpuBackend();
  backend.make_compiler = [make = backend.make_compiler] {
    return std::make_unique<RememberingCompiler>(make());
  };
  return backend;
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  return loopfleet::worker::WorkerMain(argc, argv, loopfleet::bench::RememberingBackend(), {},
                                       loopfleet::worker::MakeGpuMachine);
}
