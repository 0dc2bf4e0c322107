#include "worker/gpu/sum_emitter.h"

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace loopfleet::worker {

using llvm::Value;
using Part = SumMapping::Part;

Value* SumEmitter::Element(Value* start, Value* index) const {
  return builder_.CreateGEP(builder_.getFloatTy(), start,
                            builder_.CreateSExt(index, builder_.getInt64Ty()));
}

void SumEmitter::AddTerm(Value* number, Value* accumulator) {
  const auto& serial = sum_.points.serial;
  const Body& body = *sum_.points.nest.body;
  const auto add = [&] {
    const auto values =
        walk_.Evaluate(body, [&](const Access& access) { return walk_.Load(access); });
    walk_.Set(accumulator,
              walk_.Accumulate(body.statements.back(), values, walk_.Get(accumulator)));
  };
  std::vector<DeviceWalk::Entered> entered;
  Value* exists = walk_.EnterNumbered(serial, number, entered, sum_.quads.empty() ? 1 : kQuad);
  walk_.If(exists, [&] {
    if (sum_.quads.empty()) return add();
    quads_.RunUpToFour(sum_.quads, entered.back(), QuadEmitter::Iterations::kOfOneThread, add,
                       accumulator);
  });
  while (!entered.empty()) {
    walk_.Leave(entered.back());
    entered.pop_back();
  }
}

// The threads of all blocks of the point take turns.
void SumEmitter::AddTerms(Value* block_of_point, Value* accumulator) {
  const std::int64_t threads = sum_.blocks * stage_.block_threads;
  Value* first =
      builder_.CreateAdd(builder_.CreateMul(block_of_point, walk_.Constant(stage_.block_threads)),
                         abi_.Thread(builder_));
  walk_.Count(first, walk_.Constant(sum_.numbers), walk_.Constant(threads), DeviceWalk::Unroll::kNo,
              [&](Value* number) { AddTerm(number, accumulator); });
}

void SumEmitter::AddPartials(Value* first, Value* accumulator) {
  const looptree::Op op = sum_.points.nest.reduction()->op;
  walk_.Count(abi_.Thread(builder_), walk_.Constant(sum_.blocks),
              walk_.Constant(stage_.block_threads), DeviceWalk::Unroll::kNo, [&](Value* index) {
                Value* from = Element(partials_, builder_.CreateAdd(first, index));
                Value* partial =
                    builder_.CreateAlignedLoad(builder_.getFloatTy(), from, llvm::Align(4));
                walk_.Set(accumulator, walk_.Combine(op, walk_.Get(accumulator), partial));
              });
}

// In halves: thread i adds what thread i + n/2 has, then i + n/4, and so on.
Value* SumEmitter::Together(Value* value) {
  const looptree::Op op = sum_.points.nest.reduction()->op;
  Value* shared = abi_.Shared(builder_, std::int64_t{4} * stage_.block_threads);
  Value* thread = abi_.Thread(builder_);
  const auto store = [&](Value* sum) {
    builder_.CreateAlignedStore(sum, Element(shared, thread), llvm::Align(4));
  };
  const auto load = [&](std::int64_t further) {
    Value* from = Element(shared, builder_.CreateAdd(thread, walk_.Constant(further)));
    return builder_.CreateAlignedLoad(builder_.getFloatTy(), from, llvm::Align(4));
  };
  store(value);
  for (std::int64_t half = stage_.block_threads / 2; half > 0; half /= 2) {
    abi_.Wait(builder_);
    walk_.If(builder_.CreateICmpSLT(thread, walk_.Constant(half)),
             [&] { store(walk_.Combine(op, load(0), load(half))); });
  }
  return load(0);
}

void SumEmitter::Emit() {
  const Statement& reduction = *sum_.points.nest.reduction();
  Value* point = abi_.Block(builder_);
  Value* block_of_point = walk_.Constant(0);
  if (sum_.part == Part::kFirst) {
    block_of_point = builder_.CreateURem(point, walk_.Constant(sum_.blocks));
    point = builder_.CreateUDiv(point, walk_.Constant(sum_.blocks));
  }
  std::vector<DeviceWalk::Entered> entered;
  // The same for the whole block, so its threads meet where they wait.
  walk_.If(walk_.EnterNumbered(sum_.points.free, point, entered), [&] {
    const auto identity = static_cast<float>(ReductionIdentity(reduction.op));
    Value* accumulator =
        walk_.NewVariable(llvm::ConstantFP::get(builder_.getFloatTy(), llvm::APFloat(identity)));
    if (sum_.part == Part::kSecond) {
      AddPartials(builder_.CreateMul(point, walk_.Constant(sum_.blocks)), accumulator);
    } else {
      AddTerms(block_of_point, accumulator);
    }
    Value* sum = Together(walk_.Get(accumulator));
    Value* is_first = builder_.CreateICmpEQ(abi_.Thread(builder_), walk_.Constant(0));
    walk_.If(is_first, [&] {
      if (sum_.part == Part::kFirst) {
        builder_.CreateAlignedStore(sum, Element(partials_, abi_.Block(builder_)), llvm::Align(4));
      } else {
        walk_.Store(sum, *reduction.target);
      }
    });
  });
  while (!entered.empty()) {
    walk_.Leave(entered.back());
    entered.pop_back();
  }
}

}  // namespace loopfleet::worker
