#include "kernel/tensor_backend.h"

#include <fmt/format.h>

#include <utility>

#include "tensor/tensor_error.h"

namespace loopfleet {
namespace {

class KernelRun final : public tensor::Runnable {
 public:
  explicit KernelRun(std::shared_ptr<LocalKernel> kernel) : kernel_(std::move(kernel)) {}
  void Run(const float* const* inputs, float* const* outputs) override {
    kernel_->Run(inputs, outputs);
  }
  std::uint64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::string remark() const override {
    if (kernel_->verified() != Verified::kUnjudged) return {};
    return fmt::format("a kernel ran between guard pages, but its results could not be checked: {}",
                       kernel_->remark());
  }

 private:
  const std::shared_ptr<LocalKernel> kernel_;
};

class CpuBackend final : public tensor::Backend {
 public:
  CpuBackend(const CompileService::Options& options, VerifyWish verify)
      : kernels_(options), verify_(verify) {}
  std::string name() const override { return "cpu"; }
  std::shared_ptr<tensor::Runnable> Compile(const looptree::LoopTree& tree) override {
    auto kernel = kernels_.Compile(tree, verify_);
    if (kernel) return std::make_shared<KernelRun>(*std::move(kernel));
    throw tensor::TensorError(
        tensor::TensorError::Kind::kKernel,
        fmt::format("{}: {}", InfoOf(kernel.error().code).name, kernel.error().message));
  }

 private:
  LocalKernels kernels_;
  const VerifyWish verify_;
};

}  // namespace

std::shared_ptr<tensor::Backend> CpuTensorBackend(const CompileService::Options& options,
                                                  VerifyWish verify) {
  return std::make_shared<CpuBackend>(options, verify);
}

}  // namespace loopfleet
