#include "worker/gpu/quad_emitter.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <set>

#include "worker/cpu/nest.h"

namespace loopfleet::worker {

using llvm::Value;

bool QuadEmitter::IsWide(const Access& access, LoopId loop) const {
  return !stage_.registers.contains(access.buffer) && MovesInQuads(plan_, access, loop);
}

QuadEmitter::Four QuadEmitter::LoadWide(const Access& access) const {
  auto* type = llvm::FixedVectorType::get(builder_.getFloatTy(), kQuad);
  Value* vector = builder_.CreateAlignedLoad(type, walk_.Pointer(access), llvm::Align(16));
  Four four{};
  for (std::uint64_t lane = 0; lane < kQuad; ++lane) {
    four[lane] = builder_.CreateExtractElement(vector, lane);
  }
  return four;
}

// What is loaded four at a time, and what is the same for all four and not written.
void QuadEmitter::LoadAhead(const StraightLine& line, LoopId loop) {
  std::set<BufferId> written;
  for (const Body* body : line) {
    for (const Statement& statement : body->statements) {
      if (statement.target.has_value()) written.insert(statement.target->buffer);
    }
  }
  for (const Body* body : line) {
    for (const Statement& statement : body->statements) {
      for (const Operand& operand : statement.operands) {
        const auto* access = std::get_if<Access>(&operand);
        if (access == nullptr || stage_.registers.contains(access->buffer)) continue;
        if (IsWide(*access, loop)) {
          loaded_[access] = LoadWide(*access);
        } else if (StrideOf(*access, loop) == 0 && !written.contains(access->buffer)) {
          loaded_[access].fill(walk_.Load(*access));
        }
      }
    }
  }
}

Value* QuadEmitter::Load(const Access& access, LoopId loop, std::int64_t lane) {
  const auto at = loaded_.find(&access);
  if (at != loaded_.end()) return at->second[static_cast<std::size_t>(lane)];
  return walk_.Load(access, lane * StrideOf(access, loop));
}

void QuadEmitter::RunLane(const Body& body, LoopId loop, std::int64_t lane, Value* accumulator) {
  const auto values =
      walk_.Evaluate(body, [&](const Access& access) { return Load(access, loop, lane); });
  for (std::size_t i = 0; i < body.statements.size(); ++i) {
    const Statement& statement = body.statements[i];
    if (!statement.target.has_value()) continue;
    const Access& target = *statement.target;
    Value* value = values.values[i];
    if (!statement.reduced.empty()) {
      if (accumulator != nullptr) {
        walk_.Set(accumulator, walk_.Accumulate(statement, values, walk_.Get(accumulator)));
        continue;
      }
      value = walk_.Accumulate(statement, values, Load(target, loop, lane));
    }
    if (IsWide(target, loop)) {
      stored_[&target][static_cast<std::size_t>(lane)] = value;
    } else {
      walk_.Store(value, target, lane * StrideOf(target, loop));
    }
  }
}

void QuadEmitter::Run(const StraightLine& line, LoopId loop, Iterations iterations,
                      Value* accumulator) {
  loaded_.clear();
  stored_.clear();
  LoadAhead(line, loop);
  for (const Body* body : line) {
    const Statement& last = body->statements.back();
    const bool in_memory = !last.reduced.empty() && accumulator == nullptr;
    if (in_memory && IsWide(*last.target, loop)) loaded_[&*last.target] = LoadWide(*last.target);
  }
  for (std::int64_t lane = 0; lane < kQuad; ++lane) {
    walk_.TakeIteration(iterations == Iterations::kOfTheirOwn ? lane : 0);
    for (const Body* body : line) RunLane(*body, loop, lane, accumulator);
  }
  walk_.TakeIteration(0);
  for (const Body* body : line) {
    for (const Statement& statement : body->statements) {
      if (!statement.target.has_value()) continue;
      const auto at = stored_.find(&*statement.target);
      if (at == stored_.end()) continue;
      Value* vector =
          llvm::PoisonValue::get(llvm::FixedVectorType::get(builder_.getFloatTy(), kQuad));
      for (std::uint64_t lane = 0; lane < kQuad; ++lane) {
        vector = builder_.CreateInsertElement(vector, at->second[lane], lane);
      }
      builder_.CreateAlignedStore(vector, walk_.Pointer(*statement.target), llvm::Align(16));
    }
  }
}

void QuadEmitter::RunUpToFour(const StraightLine& line, const DeviceWalk::Entered& entered,
                              Iterations iterations, const std::function<void()>& single,
                              Value* accumulator) {
  const PlanLoop& loop = plan_.loops[entered.loop];
  if (std::ranges::all_of(loop.extents, [](std::int64_t extent) { return extent % kQuad == 0; })) {
    return Run(line, entered.loop, iterations, accumulator);
  }
  Value* first = walk_.offset(entered.loop);
  Value* end = builder_.CreateAdd(first, walk_.Constant(kQuad));
  Value* are_four = builder_.CreateICmpSLE(end, entered.extent);
  walk_.If(are_four, [&] { Run(line, entered.loop, iterations, accumulator); });
  walk_.Leave(entered);
  walk_.If(builder_.CreateNot(are_four), [&] {
    walk_.Count(first, entered.extent, walk_.Constant(1), DeviceWalk::Unroll::kNo,
                [&](Value* offset) {
                  const auto one = walk_.Enter(entered.loop, offset);
                  single();
                  walk_.Leave(one);
                });
  });
}

}  // namespace loopfleet::worker
