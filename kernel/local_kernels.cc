#include "kernel/local_kernels.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>

#include "common/looptree/text/text.h"
#include "kernel/compile_message.h"
#include "kernel/fork_count.h"

namespace loopfleet {
namespace {

constexpr std::size_t kAlignment = 64;

// The first ones that this process may use.
std::vector<int> UsableCores(std::uint32_t threads) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  ::sched_getaffinity(0, sizeof usable, &usable);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < threads; ++core) {
    if (CPU_ISSET(core, &usable)) cores.push_back(core);
  }
  for (std::size_t i = 0; !cores.empty() && cores.size() < threads; ++i) cores.push_back(cores[i]);
  return cores;
}

}  // namespace

// The last members of the array that a kernel is called with, and what they point to.
struct LocalKernel::Scratch {
  struct Freed {
    void operator()(float* memory) const {
      ::operator delete(memory, std::align_val_t{kAlignment});
    }
  };
  std::vector<std::unique_ptr<float, Freed>> buffers;
};

SharedThreads::SharedThreads(std::uint32_t threads)
    : pool_([threads] {
        return std::unique_ptr<Pool>(
            new Pool{.mutex = {}, .threads = ThreadPool(UsableCores(threads))});
      }) {}

SharedThreads::Turn SharedThreads::Take() {
  Pool& pool = pool_.Get();
  return {.lock = std::unique_lock(pool.mutex), .parallel_for = pool.threads.parallel_for()};
}

LocalKernel::LocalKernel(Served served, std::unique_ptr<CodeArea::Block> code,
                         std::shared_ptr<SharedThreads> threads)
    : code_(std::move(code)),
      threads_(std::move(threads)),
      scratch_bytes_(served.compiled.kernel.scratch_bytes),
      code_hash_(std::move(served.code_hash)),
      verified_(served.verified),
      remark_(std::move(served.remark)),
      notes_(std::move(served.compiled.kernel.notes)) {
  for (const BufferSpec& buffer : served.compiled.kernel.buffers) {
    switch (buffer.role) {
      case BufferSpec::Role::kInput: ++input_count_; break;
      case BufferSpec::Role::kOutput: ++output_count_; break;
      case BufferSpec::Role::kScratch: scratch_counts_.push_back(buffer.element_count); break;
    }
  }
  scratch_ = MakeScratch();
}

std::unique_ptr<LocalKernel::Scratch> LocalKernel::MakeScratch() const {
  auto scratch = std::make_unique<Scratch>();
  for (const std::uint64_t count : scratch_counts_) {
    scratch->buffers.emplace_back(static_cast<float*>(::operator new(
        std::max<std::uint64_t>(count, 1) * sizeof(float), std::align_val_t{kAlignment})));
  }
  return scratch;
}

void LocalKernel::Run(const float* const* inputs, float* const* outputs) {
  constexpr std::size_t kFew = 32;
  std::array<float*, kFew> few;
  std::vector<float*> many;
  const std::size_t count = input_count_ + output_count_ + scratch_counts_.size() + 1;
  float** const pointers = count <= kFew ? few.data() : (many.resize(count), many.data());
  float** next = pointers;
  // Kernels never write their inputs.
  for (std::size_t i = 0; i < input_count_; ++i) *next++ = const_cast<float*>(inputs[i]);
  for (std::size_t i = 0; i < output_count_; ++i) *next++ = outputs[i];
  const bool is_mine = !in_use_.test_and_set(std::memory_order_acquire);
  const std::unique_ptr<Scratch> own = is_mine ? nullptr : MakeScratch();
  for (const auto& buffer : (is_mine ? *scratch_ : *own).buffers) *next++ = buffer.get();
  if (threads_) {
    const SharedThreads::Turn turn = threads_->Take();
    *next = reinterpret_cast<float*>(const_cast<ParallelFor*>(turn.parallel_for));
    code_->function()(pointers);
  } else {
    code_->function()(pointers);
  }
  if (is_mine) in_use_.clear(std::memory_order_release);
}

std::expected<std::shared_ptr<LocalKernel>, Failure> LocalKernels::Compile(
    const looptree::LoopTree& tree, VerifyWish verify) {
  if (const std::uint64_t forks = ForkCount(); forks != fork_count_) {
    area_.reset();  // lives on while a kernel is in it
    fork_count_ = forks;
  }
  if (!area_) {
    auto area = CodeArea::Create();
    if (!area) {
      is_forbidden_ = area.error().kind == ErrorKind::kSystem;
      return std::unexpected(
          Failure{.code = FailureCode::kUnsupported, .message = area.error().message});
    }
    area_ = *std::move(area);
  }
  const CodePlace place = area_->FreePlace();
  LF_TRY(Served served, service_.Ask({.compile = {.code_address = place.address,
                                                  .max_code_bytes = place.max_bytes,
                                                  .threads = threads_,
                                                  .outside = OutsideFunctions::OfThisProcess(),
                                                  .ir = looptree::IrTextOf(tree)},
                                      .verify = verify}));
  if (auto failure = CheckBuffers(served.compiled.kernel, tree.program())) {
    return std::unexpected(*std::move(failure));
  }
  auto code = area_->Write(served.compiled.code);
  if (!code) {
    return std::unexpected(
        Failure{.code = FailureCode::kCompileError, .message = code.error().message});
  }
  std::shared_ptr<SharedThreads> threads;
  if (served.compiled.kernel.threads > 1) {
    if (!shared_) shared_ = std::make_shared<SharedThreads>(threads_);
    threads = shared_;
  }
  return std::make_shared<LocalKernel>(std::move(served), *std::move(code), std::move(threads));
}

}  // namespace loopfleet
