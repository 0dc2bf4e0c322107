#include "tests/unit/worker/gpu/codegen/emulated_device.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <ucontext.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/result.h"
#include "common/looptree/text/text.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "worker/cpu/linker.h"
#include "worker/cpu/object_writer.h"
#include "worker/cpu/target.h"
#include "worker/gpu/codegen/device_abi.h"
#include "worker/gpu/codegen/device_planner.h"
#include "worker/gpu/codegen/module_emitter.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;  // kernels use at most 1 KiB of locals

// One thread of the block that is running.
struct Fibre {
  HostThread thread;  // first member: `wait` casts a pointer to it
  ucontext_t context{};
  std::vector<float*> arguments;
  bool done = false;
};

// State shared with the fibres. A test thread runs one device at a time.
struct Running {
  KernelFunction function = nullptr;
  ucontext_t scheduler{};
  Fibre* current = nullptr;
};
thread_local Running running;

void WaitHere(HostThread* thread) {
  auto* fibre = reinterpret_cast<Fibre*>(thread);
  ::swapcontext(&fibre->context, &running.scheduler);
}

void FibreMain() {
  Fibre* fibre = running.current;
  running.function(fibre->arguments.data());
  fibre->done = true;
}

// HostAbi with wrong barriers.
class WrongAbi final : public DeviceAbi {
 public:
  explicit WrongAbi(EmulatedDevice::Waiting waiting) : waiting_(waiting) {}
  llvm::Function* AddStage(llvm::Module& module, const StageFunction& stage) override {
    return host_->AddStage(module, stage);
  }
  void Finish(llvm::Module& module, const std::vector<llvm::Function*>& stages,
              std::uint32_t buffers) override {
    host_->Finish(module, stages, buffers);
  }
  llvm::Value* Thread(llvm::IRBuilderBase& builder) override { return host_->Thread(builder); }
  llvm::Value* Block(llvm::IRBuilderBase& builder) override { return host_->Block(builder); }
  void Wait(llvm::IRBuilderBase& builder) override {
    if (waiting_ == EmulatedDevice::Waiting::kForgotten) return;
    // Odd threads wait in another place.
    llvm::Value* odd =
        builder.CreateTrunc(host_->Thread(builder), llvm::Type::getInt1Ty(builder.getContext()));
    llvm::Function* function = builder.GetInsertBlock()->getParent();
    auto* here = llvm::BasicBlock::Create(builder.getContext(), "here", function);
    auto* there = llvm::BasicBlock::Create(builder.getContext(), "there", function);
    auto* done = llvm::BasicBlock::Create(builder.getContext(), "waited", function);
    builder.CreateCondBr(odd, there, here);
    for (llvm::BasicBlock* block : {here, there}) {
      builder.SetInsertPoint(block);
      host_->Wait(builder);
      builder.CreateBr(done);
    }
    builder.SetInsertPoint(done);
  }
  llvm::Value* Shared(llvm::IRBuilderBase& builder, std::int64_t bytes) override {
    return host_->Shared(builder, bytes);
  }
  llvm::Value* Local(llvm::IRBuilderBase& builder, std::int64_t bytes) override {
    return host_->Local(builder, bytes);
  }

 private:
  const EmulatedDevice::Waiting waiting_;
  std::unique_ptr<DeviceAbi> host_ = HostAbi();
};

bool Waits(const Stage& stage) {
  if (const auto* tile = std::get_if<TileMapping>(&stage.mapping)) return !tile->staged.empty();
  return std::holds_alternative<TeamMapping>(stage.mapping);
}

}  // namespace

class EmulatedDevice::Impl {
 public:
  explicit Impl(Waiting waiting)
      : abi_(waiting == Waiting::kAsAsked ? HostAbi() : std::make_unique<WrongAbi>(waiting)) {
    auto machine = MakeTargetMachine(CpuIsa::kHost);
    LF_CHECK(machine.has_value(), "{}", machine.error().message);
    machine_ = *std::move(machine);
    writer_ = std::make_unique<ObjectWriter>(*machine_);
  }

  std::expected<std::vector<looptree::Tensor>, Failure> Run(
      const looptree::LoopTree& tree, const std::vector<looptree::Tensor>& inputs,
      std::uint64_t seed, std::string& problems) {
    LF_TRY(const DevicePlan device, PlanDevice(tree));
    const auto kernel = Compile(device);
    device_ = &device;
    random_ = SplitMix64(seed);
    specs_ = BufferSpecsOf(device);
    problems_.clear();
    current_ = this;
    kernel_ = kernel->function();
    auto outputs = RunGuarded(&Impl::RunAll, specs_, inputs, problems);
    problems += problems_;
    return outputs;
  }

 private:
  std::unique_ptr<LinkedKernel> Compile(const DevicePlan& device) {
    if (compiles_++ % 64 == 0) context_ = std::make_unique<llvm::LLVMContext>();
    llvm::Module module("emulated", *context_);
    module.setDataLayout(machine_->createDataLayout());
    module.setTargetTriple(machine_->getTargetTriple().str());
    EmitDevice(device, *abi_, module);
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    LF_CHECK(!llvm::verifyModule(module, &stream), "bad IR: {}", problem);
    auto linked = linker_.Link(writer_->Write(module));
    LF_CHECK(linked.has_value(), "{}", linked.error().message);
    return *std::move(linked);
  }

  static void RunAll(float* const* buffers) { current_->RunStages(buffers); }

  void RunStages(float* const* buffers) {
    running.function = kernel_;
    for (std::uint32_t i = 0; i < device_->stages.size(); ++i) {
      const Stage& stage = device_->stages[i];
      std::vector<std::uint32_t> blocks = Shuffled(stage.blocks);
      for (std::uint32_t block : blocks) {
        std::ranges::fill(shared_, std::numeric_limits<float>::quiet_NaN());
        RunBlock(i, stage, block, buffers);
      }
    }
  }

  std::vector<std::uint32_t> Shuffled(std::uint32_t count) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    return order;
  }

  void RunBlock(std::uint32_t index, const Stage& stage, std::uint32_t block,
                float* const* buffers) {
    while (fibres_.size() < stage.block_threads) {
      fibres_.push_back(std::make_unique<Fibre>());
      stacks_.push_back(
          std::make_unique<std::max_align_t[]>(kStackBytes / sizeof(std::max_align_t)));
    }
    for (std::uint32_t i = 0; i < stage.block_threads; ++i) {
      Fibre& fibre = *fibres_[i];
      fibre.thread = {
          .stage = index, .thread = i, .block = block, .shared = shared_.data(), .wait = &WaitHere};
      fibre.arguments.assign(buffers, buffers + specs_.size());
      fibre.arguments.push_back(reinterpret_cast<float*>(&fibre.thread));
      fibre.done = false;
    }
    if (!Waits(stage)) {
      for (std::uint32_t i : Shuffled(stage.block_threads)) kernel_(fibres_[i]->arguments.data());
      return;
    }
    for (std::uint32_t i = 0; i < stage.block_threads; ++i) {
      ucontext_t& context = fibres_[i]->context;
      ::getcontext(&context);
      context.uc_stack.ss_sp = stacks_[i].get();
      context.uc_stack.ss_size = kStackBytes;
      context.uc_link = &running.scheduler;
      ::makecontext(&context, &FibreMain, 0);
    }
    for (std::uint32_t done = 0; done == 0;) {
      for (std::uint32_t i : Shuffled(stage.block_threads)) {
        running.current = fibres_[i].get();
        ::swapcontext(&running.scheduler, &fibres_[i]->context);
        done += fibres_[i]->done ? 1 : 0;
      }
      if (done == 0) CheckPlaces(index, stage, block);
      if (done == 0 || done == stage.block_threads) continue;
      problems_ += fmt::format("stage {} block {}: {} threads ended where {} wait\n", index, block,
                               done, stage.block_threads - done);
    }
  }

  // On a device, all threads of a block must wait at the same barrier.
  void CheckPlaces(std::uint32_t index, const Stage& stage, std::uint32_t block) {
    const std::uint32_t place = fibres_.front()->thread.place;
    for (std::uint32_t i = 1; i < stage.block_threads; ++i) {
      if (fibres_[i]->thread.place == place) continue;
      problems_ += fmt::format("stage {} block {}: thread 0 waits in place {}, thread {} in {}\n",
                               index, block, place, i, fibres_[i]->thread.place);
      return;
    }
  }

  static thread_local Impl* current_;

  std::unique_ptr<llvm::LLVMTargetMachine> machine_;
  std::unique_ptr<ObjectWriter> writer_;
  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<DeviceAbi> abi_;
  Linker linker_;
  int compiles_ = 0;

  const DevicePlan* device_ = nullptr;
  KernelFunction kernel_ = nullptr;
  std::vector<BufferSpec> specs_;
  SplitMix64 random_{0};
  std::string problems_;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<std::unique_ptr<std::max_align_t[]>> stacks_;
  struct alignas(64) Line {
    float values[16];
  };
  std::vector<Line> shared_lines_ = std::vector<Line>(kSharedBytes / sizeof(Line));
  std::span<float> shared_{shared_lines_.front().values, kSharedBytes / sizeof(float)};
};

thread_local EmulatedDevice::Impl* EmulatedDevice::Impl::current_ = nullptr;

EmulatedDevice::EmulatedDevice(Waiting waiting) : impl_(std::make_unique<Impl>(waiting)) {}
EmulatedDevice::~EmulatedDevice() = default;

std::expected<std::vector<looptree::Tensor>, Failure> EmulatedDevice::Run(
    const looptree::LoopTree& tree, const std::vector<looptree::Tensor>& inputs, std::uint64_t seed,
    std::string& problems) {
  return impl_->Run(tree, inputs, seed, problems);
}

std::string EmulatedDevice::Check(const looptree::LoopTree& tree,
                                  const std::vector<looptree::Tensor>& inputs,
                                  const looptree::Reference& reference, std::uint64_t seed) {
  std::string problems;
  const auto outputs = Run(tree, inputs, seed, problems);
  if (!outputs.has_value()) return outputs.error().message;
  problems += Difference(*outputs, reference);
  problems += Difference(*outputs, looptree::Interpret(tree, inputs), reference);
  if (problems.empty()) return "";
  return problems + "\n" + TreeText(tree, {}) + DescribeStages(PlanDevice(tree).value());
}

}  // namespace loopfleet::worker
