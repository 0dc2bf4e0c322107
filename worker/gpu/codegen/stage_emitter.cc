#include "worker/gpu/codegen/stage_emitter.h"

#include <llvm/IR/IRBuilder.h>

namespace loopfleet::worker {
namespace {

using llvm::Value;

Value* Identity(llvm::IRBuilderBase& builder, const Statement& reduction) {
  const auto value = static_cast<float>(ReductionIdentity(reduction.op));
  return llvm::ConstantFP::get(builder.getFloatTy(), llvm::APFloat(value));
}

}  // namespace

void StageEmitter::ForGrid(std::int64_t count, const Numbered& run) {
  const std::int64_t threads = std::int64_t{stage_.blocks} * stage_.block_threads;
  Value* first = builder_.CreateAdd(
      builder_.CreateMul(abi_.Block(builder_), walk_.Constant(stage_.block_threads)),
      abi_.Thread(builder_));
  if (threads == count) return run(first);
  if (threads > count) {
    return walk_.If(builder_.CreateICmpSLT(first, walk_.Constant(count)), [&] { run(first); });
  }
  walk_.Count(first, walk_.Constant(count), walk_.Constant(threads), DeviceWalk::Unroll::kNo, run);
}

void StageEmitter::ForBlock(std::int64_t count, const Numbered& run) {
  Value* first = abi_.Thread(builder_);
  if (count == stage_.block_threads) return run(first);
  if (count < stage_.block_threads) {
    return walk_.If(builder_.CreateICmpSLT(first, walk_.Constant(count)), [&] { run(first); });
  }
  walk_.Count(first, walk_.Constant(count), walk_.Constant(stage_.block_threads),
              DeviceWalk::Unroll::kNo, run);
}

void StageEmitter::Emit(const ThreadMapping& threads) {
  ForGrid(threads.iterations, [&](Value* number) {
    const std::function<void(std::size_t)> inside = [&](std::size_t level) {
      if (level < threads.around.size()) {
        return walk_.RunLoop(threads.around[level]->loop, [&] { inside(level + 1); });
      }
      std::vector<DeviceWalk::Entered> entered;
      Value* exists = walk_.EnterNumbered(threads.group, number, entered);
      walk_.If(exists, [&] { RunSerial(threads.group.back()->steps); });
      while (!entered.empty()) {
        walk_.Leave(entered.back());
        entered.pop_back();
      }
    };
    inside(0);
  });
}

void StageEmitter::Emit(const PointMapping& points) {
  ForGrid(points.points, [&](Value* number) { RunPoint(points, number); });
}

void StageEmitter::Emit(const TeamMapping& team) {
  if (team.group.empty()) return RunTeam(*stage_.step, Fills::kDoneBefore);
  const auto run = [&](Value* number) {
    std::vector<DeviceWalk::Entered> entered;
    Value* exists = walk_.EnterNumbered(team.group, number, entered);
    // The condition is the same for the whole block, so its threads reach the same barriers.
    walk_.If(exists, [&] { RunTeam(team.group.back()->steps); });
    while (!entered.empty()) {
      walk_.Leave(entered.back());
      entered.pop_back();
    }
  };
  Value* block = abi_.Block(builder_);
  if (team.iterations == stage_.blocks) return run(block);
  walk_.Count(block, walk_.Constant(team.iterations), walk_.Constant(stage_.blocks),
              DeviceWalk::Unroll::kNo, run);
}

void StageEmitter::RunSerial(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const auto* loop = std::get_if<LoopStep>(&step.what);
    if (loop == nullptr) {
      walk_.RunBody(std::get<Body>(step.what));
      continue;
    }
    // Loops that only reduce into one element keep it in a register.
    auto nest = NestAt(*loop);
    if (nest.has_value() && nest->reduction() != nullptr && PointsAreIndependent(plan_, *nest)) {
      const PointMapping points = PointsOf(plan_, *std::move(nest));
      const bool sums_up =
          points.points == 1 && !stage_.registers.contains(points.nest.reduction()->target->buffer);
      if (sums_up) {
        RunPoint(points, walk_.Constant(0));
        continue;
      }
    }
    RunSerial(loop->prepare);
    walk_.RunLoop(loop->loop, [&] { RunSerial(loop->steps); });
  }
}

void StageEmitter::RunPoint(const PointMapping& points, Value* number) {
  std::vector<DeviceWalk::Entered> entered;
  Value* exists = walk_.EnterNumbered(points.free, number, entered);
  walk_.If(exists, [&] {
    const Statement* reduction = points.nest.reduction();
    if (reduction == nullptr) return walk_.RunBody(*points.nest.body);
    Value* accumulator =
        walk_.NewVariable(StartsInside(points.nest) ? Identity(builder_, *reduction)
                                                    : walk_.Load(*reduction->target));
    RunReducing(points, 0, accumulator);
    walk_.Store(walk_.Get(accumulator), *reduction->target);
  });
  while (!entered.empty()) {
    walk_.Leave(entered.back());
    entered.pop_back();
  }
}

void StageEmitter::RunReducing(const PointMapping& points, std::size_t level, Value* accumulator) {
  if (level < points.serial.size()) {
    return walk_.RunLoop(points.serial[level]->loop,
                         [&] { RunReducing(points, level + 1, accumulator); });
  }
  const Body& body = *points.nest.body;
  const auto values =
      walk_.Evaluate(body, [&](const Access& access) { return walk_.LoadGuarded(access); });
  for (std::size_t i = 0; i + 1 < body.statements.size(); ++i) {
    if (body.statements[i].target) walk_.Store(values.values[i], *body.statements[i].target);
  }
  walk_.Set(accumulator, walk_.Accumulate(body.statements.back(), values, walk_.Get(accumulator)));
}

void StageEmitter::RunTeam(const std::vector<Step>& steps) {
  for (const Step& step : steps) RunTeam(step, Fills::kHere);
}

// Each step ends with a barrier, so the next step sees its results.
void StageEmitter::RunTeam(const Step& step, Fills fills) {
  const auto* loop = std::get_if<LoopStep>(&step.what);
  if (loop == nullptr) {
    Value* first = builder_.CreateICmpEQ(abi_.Thread(builder_), walk_.Constant(0));
    walk_.If(first, [&] { walk_.RunBody(std::get<Body>(step.what)); });
    abi_.Wait(builder_);
    return;
  }
  const bool split =
      plan_.loops[loop->loop].parallel && std::get<TeamMapping>(stage_.mapping).group.empty();
  if (split) {
    const auto group = ParallelGroup(plan_, *loop);
    ForBlock(MostIterations(plan_, group), [&](Value* number) {
      std::vector<DeviceWalk::Entered> entered;
      Value* exists = walk_.EnterNumbered(group, number, entered);
      walk_.If(exists, [&] { RunSerial(group.back()->steps); });
      while (!entered.empty()) {
        walk_.Leave(entered.back());
        entered.pop_back();
      }
    });
    abi_.Wait(builder_);
    return;
  }
  auto nest = NestAt(*loop);
  const bool fills_done = fills == Fills::kDoneBefore;
  if (nest.has_value() && PointsAreIndependent(plan_, *nest)) {
    const PointMapping points = PointsOf(plan_, *std::move(nest));
    if (points.points <= kMostNumbers) {
      ForBlock(points.points, [&](Value* number) { RunPoint(points, number); });
      abi_.Wait(builder_);
      return;
    }
  }
  if (!fills_done) RunTeam(loop->prepare);
  walk_.RunLoop(loop->loop, [&] { RunTeam(loop->steps); });
}

}  // namespace loopfleet::worker
