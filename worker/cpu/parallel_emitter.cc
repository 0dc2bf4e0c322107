#include "worker/cpu/parallel_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "common/base/check.h"
#include "worker/cpu/source_lines.h"

namespace loopfleet::worker {
namespace {

using llvm::Value;
using Values = LoopState::Values;

constexpr const char* kTaskName = "loopfleet_task";  // LLVM appends a number to further ones

}  // namespace

ParallelEmitter::Group ParallelEmitter::GroupAt(const LoopStep& outermost) const {
  Group group = {&outermost};
  while (group.back()->steps.size() == 1) {
    const auto* inside = std::get_if<LoopStep>(&group.back()->steps[0].what);
    if (inside == nullptr || !plan_.loops[inside->loop].parallel) break;
    group.push_back(inside);
  }
  // `prepare` starts a reduction over its loop, and parallel loops are not reduced.
  for (const LoopStep* step : group) LF_CHECK(step->prepare.empty(), "a parallel loop reduces");
  return group;
}

std::int64_t ParallelEmitter::MostIterations(const LoopStep& step) const {
  const PlanLoop& loop = plan_.loops[step.loop];
  return (loop.extents.front() + loop.step - 1) / loop.step;
}

Value* ParallelEmitter::IterationsHere(const LoopStep& step) const {
  const PlanLoop& loop = plan_.loops[step.loop];
  Value* up = builder_.CreateAdd(state_.extent(loop.dim), state_.Constant(loop.step - 1));
  return builder_.CreateUDiv(up, state_.Constant(loop.step));
}

Value* ParallelEmitter::Smaller(Value* a, Value* b) {
  return builder_.CreateSelect(builder_.CreateICmpSLT(a, b), a, b);
}

void ParallelEmitter::Emit(const LoopStep& outermost, const EmitLoop& emit) {
  const SourceLines::Scope scope(state_.lines(), builder_, outermost.loop);
  const Group group = GroupAt(outermost);
  llvm::LLVMContext& context = builder_.getContext();
  llvm::Function* kernel = builder_.GetInsertBlock()->getParent();
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Type* number = builder_.getInt64Ty();
  auto* task_type =
      llvm::FunctionType::get(builder_.getVoidTy(), {pointer, number, number, number}, false);
  auto* task = llvm::Function::Create(task_type, llvm::Function::InternalLinkage, kTaskName,
                                      *kernel->getParent());
  task->setAttributes(kernel->getAttributes());
  if (state_.lines() != nullptr) state_.lines()->AddFunction(*task);

  // A frame passes the task the values that the loop needs from its surroundings.
  const std::vector<LoopState::Place> places = state_.PlacesIn(outermost);
  std::vector<llvm::Type*> types;
  for (const LoopState::Place& place : places) types.push_back((*place.value)->getType());
  auto* frame_type = llvm::StructType::get(context, types);
  Value* frame = nullptr;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    llvm::BasicBlock& entry = kernel->getEntryBlock();
    builder_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    frame = builder_.CreateAlloca(frame_type);
  }
  Values outside;
  for (unsigned i = 0; i < places.size(); ++i) {
    outside.push_back(*places[i].value);
    builder_.CreateStore(outside.back(), builder_.CreateStructGEP(frame_type, frame, i));
  }
  Value* count = IterationsHere(outermost);
  for (std::size_t i = 1; i < group.size(); ++i) {
    count = builder_.CreateMul(count, state_.Constant(MostIterations(*group[i])));
  }
  auto* run_type = llvm::FunctionType::get(builder_.getVoidTy(),
                                           {pointer, pointer, pointer, number, number}, false);
  Value* run = builder_.CreateLoad(pointer, parallel_for_);
  builder_.CreateCall(run_type, run,
                      {parallel_for_, task, frame, count, state_.Constant(plan_.threads)});

  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", task));
  const SourceLines::Scope inside(state_.lines(), builder_, outermost.loop);
  Value* thread_start = builder_.CreateMul(
      task->getArg(3), state_.Constant(static_cast<std::int64_t>(plan_.thread_bytes)));
  for (unsigned i = 0; i < places.size(); ++i) {
    Value*& value = *places[i].value;
    value = builder_.CreateLoad(types[i], builder_.CreateStructGEP(frame_type, task->getArg(0), i));
    const Access* access = places[i].access;
    if (access != nullptr && plan_.buffers[access->buffer].per_thread) {
      value = builder_.CreateGEP(builder_.getInt8Ty(), value, thread_start);
    }
  }
  EmitPart(group, 0, {.begin = task->getArg(1), .end = task->getArg(2)}, emit);
  builder_.CreateRetVoid();
  for (std::size_t i = 0; i < places.size(); ++i) *places[i].value = outside[i];
}

void ParallelEmitter::EmitPart(const Group& group, std::size_t level, const Part& part,
                               const EmitLoop& emit) {
  const LoopStep& step = *group[level];
  const PlanLoop& loop = plan_.loops[step.loop];
  Value* size = state_.Constant(loop.step);
  Value* extent = state_.extent(loop.dim);
  if (level + 1 == group.size()) {
    const LoopState::Bounds bounds{.start = builder_.CreateMul(part.begin, size),
                                   .limit = Smaller(builder_.CreateMul(part.end, size), extent)};
    state_.Within(step.loop, bounds, [&] { emit(step); });
    return;
  }
  std::int64_t inside = 1;  // iterations of the inner loops in one of this loop
  for (std::size_t i = level + 1; i < group.size(); ++i) inside *= MostIterations(*group[i]);
  Value* each = state_.Constant(inside);
  Value* first = builder_.CreateUDiv(part.begin, each);
  Value* past =
      builder_.CreateUDiv(builder_.CreateAdd(part.end, state_.Constant(inside - 1)), each);
  const LoopState::Bounds bounds{.start = builder_.CreateMul(first, size),
                                 .limit = Smaller(builder_.CreateMul(past, size), extent)};
  state_.RunPart(step.loop, bounds, [&](Value* offset) {
    Value* before = builder_.CreateMul(builder_.CreateUDiv(offset, size), each);
    Value* begin = builder_.CreateSub(part.begin, before);
    Value* zero = state_.Constant(0);
    EmitPart(group, level + 1,
             {.begin = builder_.CreateSelect(builder_.CreateICmpSLT(begin, zero), zero, begin),
              .end = Smaller(builder_.CreateSub(part.end, before), each)},
             emit);
  });
}

}  // namespace loopfleet::worker
