#include "worker/gpu/codegen/module_emitter.h"

#include <llvm/IR/ConstantFolder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "worker/gpu/codegen/device_walk.h"
#include "worker/gpu/codegen/stage_emitter.h"
#include "worker/gpu/codegen/tile_emitter.h"

namespace loopfleet::worker {
namespace {

using llvm::Value;

// What the CPU had, too, until smaller limits were measured there; no GPU has measured any.
constexpr UnrollLimits kUnrollLimits{.loop = 256, .kernel = 1024};

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

class StageFunctionEmitter {
 public:
  StageFunctionEmitter(const DevicePlan& device, const Stage& stage, DeviceAbi& abi,
                       Unroller& unroller, llvm::Function* function)
      : device_(device),
        stage_(stage),
        abi_(abi),
        unroller_(unroller),
        function_(function),
        builder_(function->getContext(), llvm::ConstantFolder(),
                 llvm::IRBuilderCallbackInserter(
                     [this](llvm::Instruction*) { unroller_.CountInstruction(); })) {
    builder_.SetInsertPoint(llvm::BasicBlock::Create(function->getContext(), "entry", function));
  }

  void Emit() {
    DeviceWalk walk(builder_, device_.plan, stage_, Buffers(), unroller_);
    if (const auto* tile = std::get_if<TileMapping>(&stage_.mapping)) {
      TileEmitter(builder_, abi_, device_.plan, *tile, walk).Emit();
    } else {
      StageEmitter emitter(builder_, abi_, device_.plan, stage_, walk);
      std::visit(Overloaded{[&](const ThreadMapping& threads) { emitter.Emit(threads); },
                            [&](const PointMapping& points) { emitter.Emit(points); },
                            [&](const TeamMapping& team) { emitter.Emit(team); },
                            [](const TileMapping&) {}},
                 stage_.mapping);
    }
    builder_.CreateRetVoid();
    walk.PromoteVariables();
  }

 private:
  std::vector<Value*> Buffers() {
    std::vector<Value*> buffers;
    Value* own = Private();
    unsigned argument = 0;
    const std::vector<PlanBuffer>& plan = device_.plan.buffers;
    for (BufferId id = 0; id < plan.size(); ++id) {
      if (plan[id].role != BufferSpec::Role::kScratch) {
        buffers.push_back(function_->getArg(argument++));
      } else if (plan[id].per_thread) {
        const bool held = stage_.registers.contains(id) || own == nullptr;
        buffers.push_back(held ? nullptr : Bytes(own, plan[id].scratch_offset));
      } else {
        buffers.push_back(Bytes(Scratch(), plan[id].scratch_offset));
      }
    }
    return buffers;
  }

  Value* Bytes(Value* start, std::int64_t offset) {
    if (offset == 0) return start;
    return builder_.CreateGEP(builder_.getInt8Ty(), start, builder_.getInt64(offset));
  }

  // The argument after the tensors.
  Value* Scratch() {
    unsigned tensors = 0;
    for (const PlanBuffer& buffer : device_.plan.buffers) {
      tensors += buffer.role == BufferSpec::Role::kScratch ? 0 : 1;
    }
    return function_->getArg(tensors);
  }

  bool NeedsPrivateMemory() const {
    for (BufferId id = 0; id < device_.plan.buffers.size(); ++id) {
      if (device_.plan.buffers[id].per_thread && !stage_.registers.contains(id)) return true;
    }
    return false;
  }

  Value* Private() {
    if (!NeedsPrivateMemory()) return nullptr;
    switch (stage_.place) {
      case PrivatePlace::kNone: return nullptr;
      case PrivatePlace::kLocal: return abi_.Local(builder_, stage_.private_bytes);
      case PrivatePlace::kShared: return abi_.Shared(builder_, stage_.private_bytes);
      case PrivatePlace::kScratch: break;
    }
    Value* slot = abi_.Block(builder_);
    const auto* team = std::get_if<TeamMapping>(&stage_.mapping);
    if (team == nullptr || team->group.empty()) {
      slot = builder_.CreateAdd(builder_.CreateMul(slot, builder_.getInt32(stage_.block_threads)),
                                abi_.Thread(builder_));
    }
    Value* bytes = builder_.CreateMul(builder_.CreateZExt(slot, builder_.getInt64Ty()),
                                      builder_.getInt64(stage_.private_bytes));
    Value* slots = Bytes(Scratch(), static_cast<std::int64_t>(device_.plan.scratch_bytes));
    return builder_.CreateGEP(builder_.getInt8Ty(), slots, bytes);
  }

  const DevicePlan& device_;
  const Stage& stage_;
  DeviceAbi& abi_;
  Unroller& unroller_;
  llvm::Function* function_;
  llvm::IRBuilder<llvm::ConstantFolder, llvm::IRBuilderCallbackInserter> builder_;
};

void EmitStages(const DevicePlan& device, DeviceAbi& abi, Unroller& unroller,
                llvm::Module& module) {
  const auto buffers = static_cast<std::uint32_t>(BufferSpecsOf(device).size());
  std::uint32_t inputs = 0;
  for (const PlanBuffer& buffer : device.plan.buffers) {
    inputs += buffer.role == BufferSpec::Role::kInput ? 1 : 0;
  }
  std::vector<llvm::Function*> functions;
  for (std::uint32_t i = 0; i < device.stages.size(); ++i) {
    const Stage& stage = device.stages[i];
    functions.push_back(abi.AddStage(
        module,
        {.stage = i, .buffers = buffers, .inputs = inputs, .block_threads = stage.block_threads}));
    StageFunctionEmitter(device, stage, abi, unroller, functions.back()).Emit();
  }
  abi.Finish(module, functions, buffers);
}

}  // namespace

std::vector<BufferSpec> BufferSpecsOf(const DevicePlan& device) {
  std::vector<BufferSpec> specs;
  for (const PlanBuffer& buffer : device.plan.buffers) {
    if (buffer.role == BufferSpec::Role::kScratch) continue;
    specs.push_back(
        {.role = buffer.role, .element_count = static_cast<std::uint64_t>(buffer.element_count)});
  }
  if (device.scratch_bytes > 0) {
    specs.push_back(
        {.role = BufferSpec::Role::kScratch, .element_count = device.scratch_bytes / 4});
  }
  return specs;
}

AnnotationEffects EmitDevice(const DevicePlan& device, DeviceAbi& abi, llvm::Module& module) {
  Unroller unroller(device.plan);
  if (unroller.IsNeeded()) {
    llvm::Module measured("measured", module.getContext());
    measured.setDataLayout(module.getDataLayout());
    EmitStages(device, abi, unroller, measured);
    unroller.Choose(kUnrollLimits);
  }
  EmitStages(device, abi, unroller, module);
  AnnotationEffects effects{
      .effective = device.effective, .partly = {}, .reasons = device.plan.not_parallel};
  AddUnrolling(device.plan, unroller, effects);
  return effects;
}

}  // namespace loopfleet::worker
