#include "kernel/tensor_backend.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "common/base/unique_fd.h"
#include "common/looptree/text/text.h"
#include "kernel/per_process.h"
#include "tensor/session.h"
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

[[noreturn]] void ThrowKernelError(const Failure& failure) {
  throw tensor::TensorError(tensor::TensorError::Kind::kKernel,
                            fmt::format("{}: {}", InfoOf(failure.code).name, failure.message));
}

// What runs kernels for the threads of one process, in turns.
struct RunService {
  explicit RunService(const CompileService::Options& options) : service(options) {}
  IsolatedRunReply Ask(const IsolatedRunRequest& request, int memory) {
    const std::lock_guard lock(mutex);
    return service.Ask(request, memory);
  }

  std::mutex mutex;
  CompileService service;
};
using OwnService = PerProcess<RunService>;

class IsolatedKernel final : public tensor::Runnable {
 public:
  IsolatedKernel(std::shared_ptr<OwnService> service, const looptree::LoopTree& tree,
                 std::uint32_t threads)
      : service_(std::move(service)),
        program_(tree.shared_program()),
        offsets_(LayOutTensors(*program_)),
        request_{.threads = threads, .ir = looptree::IrTextOf(tree)} {
    const IsolatedRunReply compiled = service_->Get().Ask(request_, -1);
    if (!compiled) ThrowKernelError(compiled.error());
    scratch_bytes_ = compiled->scratch_bytes;
    constexpr std::size_t kPageBytes = 4096;
    request_.memory_size = (offsets_.back() + kPageBytes - 1) / kPageBytes * kPageBytes;
  }

  void Run(const float* const* inputs, float* const* outputs) override {
    const UniqueFd file(::memfd_create("loopfleet-run", MFD_CLOEXEC));
    const std::size_t size = request_.memory_size;
    void* const memory =
        file && ::ftruncate(file.get(), static_cast<off_t>(size)) == 0
            ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0)
            : MAP_FAILED;
    if (memory == MAP_FAILED) throw std::bad_alloc();
    auto* const bytes = static_cast<std::byte*>(memory);
    const std::size_t input_count = program_->inputs.size();
    for (std::size_t i = 0; i < input_count; ++i) {
      std::memcpy(bytes + offsets_[i], inputs[i], BytesOf(program_->inputs[i]));
    }
    const IsolatedRunReply done = service_->Get().Ask(request_, file.get());
    for (std::size_t i = 0; done && i < program_->outputs.size(); ++i) {
      std::memcpy(outputs[i], bytes + offsets_[input_count + i], BytesOf(program_->outputs[i]));
    }
    ::munmap(memory, size);
    if (!done) ThrowKernelError(done.error());
  }
  std::uint64_t scratch_bytes() const override { return scratch_bytes_; }

 private:
  std::size_t BytesOf(looptree::NodeId node) const {
    return static_cast<std::size_t>(program_->ElementCount(node)) * sizeof(float);
  }

  const std::shared_ptr<OwnService> service_;
  const std::shared_ptr<const looptree::Program> program_;
  const std::vector<std::size_t> offsets_;
  IsolatedRunRequest request_;
  std::uint64_t scratch_bytes_ = 0;
};

class IsolatedBackend final : public tensor::Backend {
 public:
  explicit IsolatedBackend(const CompileService::Options& options)
      : threads_(options.threads), service_(std::make_shared<OwnService>([options] {
          return std::make_unique<RunService>(options);
        })) {}
  std::string name() const override { return "isolated"; }
  std::shared_ptr<tensor::Runnable> Compile(const looptree::LoopTree& tree) override {
    return std::make_shared<IsolatedKernel>(service_, tree, threads_);
  }

 private:
  const std::uint32_t threads_;
  const std::shared_ptr<OwnService> service_;
};

class CpuBackend final : public tensor::Backend {
 public:
  CpuBackend(const CompileService::Options& options, VerifyWish verify)
      : options_(options), kernels_(options), verify_(verify) {}
  std::string name() const override { return "cpu"; }
  std::shared_ptr<tensor::Runnable> Compile(const looptree::LoopTree& tree) override {
    if (isolated_) return isolated_->Compile(tree);
    auto kernel = kernels_.Compile(tree, verify_);
    if (kernel) return std::make_shared<KernelRun>(*std::move(kernel));
    if (!kernels_.IsForbidden()) ThrowKernelError(kernel.error());
    tensor::Session::Of().Tell(fmt::format(
        "kernels run in another process, on copies and unverified: {}", kernel.error().message));
    isolated_ = IsolatedTensorBackend(options_);
    return isolated_->Compile(tree);
  }

 private:
  const CompileService::Options options_;
  LocalKernels kernels_;
  const VerifyWish verify_;
  std::shared_ptr<tensor::Backend> isolated_;  // instead, where no code may run here
};

}  // namespace

std::shared_ptr<tensor::Backend> CpuTensorBackend(const CompileService::Options& options,
                                                  VerifyWish verify) {
  return std::make_shared<CpuBackend>(options, verify);
}

std::shared_ptr<tensor::Backend> IsolatedTensorBackend(const CompileService::Options& options) {
  return std::make_shared<IsolatedBackend>(options);
}

}  // namespace loopfleet
