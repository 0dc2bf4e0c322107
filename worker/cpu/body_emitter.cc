#include "worker/cpu/body_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "worker/cpu/float_math.h"
#include "worker/cpu/source_lines.h"

namespace loopfleet::worker {
namespace {

using llvm::Value;
using llvm::Intrinsic::ID;
using looptree::Op;

const llvm::Align kFloatAlign(4);

std::int64_t ElementsAway(const Access& access, const Displacement& displacement) {
  std::int64_t elements = 0;
  for (const auto& [loop, offset] : displacement) elements += StrideOf(access, loop) * offset;
  return elements;
}

std::int64_t Away(const PlanIndex& index, const Displacement& displacement) {
  std::int64_t away = 0;
  for (const auto& [loop, offset] : displacement) away += StrideOf(index, loop) * offset;
  return away;
}

}  // namespace

Value*& LoadCache::At(const Access& access, const Displacement& displacement, const Lanes& lanes) {
  const std::int64_t elements = ElementsAway(access, displacement);
  if (access.IsAffine()) return loaded_[{&access, elements, lanes.width, lanes.mask}];
  std::vector<std::int64_t> place = {elements};
  for (const AccessQuotient& quotient : access.quotients) {
    place.push_back(Away(quotient.index, displacement));
  }
  for (const AccessGuard& guard : access.guards) place.push_back(Away(guard.index, displacement));
  return guarded_[{&access, std::move(place), lanes.width, lanes.mask}];
}

Value* BodyEmitter::Splat(double value, unsigned width) {
  llvm::Constant* scalar = llvm::ConstantFP::get(builder_.getFloatTy(), value);
  if (width == 1) return scalar;
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(width), scalar);
}

Value* BodyEmitter::ConstantMask(unsigned width, unsigned active) {
  if (active >= width) return nullptr;
  std::vector<llvm::Constant*> bits;
  for (unsigned lane = 0; lane < width; ++lane) bits.push_back(builder_.getInt1(lane < active));
  return llvm::ConstantVector::get(bits);
}

Value* BodyEmitter::RuntimeMask(unsigned width, Value* active) {
  std::vector<llvm::Constant*> lanes;
  for (unsigned lane = 0; lane < width; ++lane) lanes.push_back(builder_.getInt32(lane));
  Value* count = builder_.CreateTrunc(active, builder_.getInt32Ty());
  return builder_.CreateICmpSLT(llvm::ConstantVector::get(lanes),
                                builder_.CreateVectorSplat(width, count));
}

Value* BodyEmitter::Load(const Access& access, const Displacement& displacement,
                         const Lanes& lanes) {
  if (!access.IsAffine()) return LoadGuarded(access, displacement, lanes);
  const std::int64_t elements = ElementsAway(access, displacement);
  const std::int64_t stride = lanes.width > 1 ? StrideOf(access, lanes.loop) : 0;
  return LoadLanes(access, elements, stride, lanes);
}

Value* BodyEmitter::LoadLanes(const Access& access, std::int64_t elements, std::int64_t stride,
                              const Lanes& lanes) {
  const auto scalar = [&](std::int64_t at) {
    return builder_.CreateAlignedLoad(builder_.getFloatTy(), state_.Address(access, at),
                                      kFloatAlign);
  };
  if (lanes.width == 1) return scalar(elements);
  if (stride == 0) return builder_.CreateVectorSplat(lanes.width, scalar(elements));
  auto* type = llvm::FixedVectorType::get(builder_.getFloatTy(), lanes.width);
  if (stride == 1) {
    Value* address = state_.Address(access, elements);
    if (lanes.mask == nullptr) return builder_.CreateAlignedLoad(type, address, kFloatAlign);
    return builder_.CreateMaskedLoad(type, address, kFloatAlign, lanes.mask,
                                     llvm::Constant::getNullValue(type));
  }
  Value* vector = llvm::Constant::getNullValue(type);
  for (unsigned lane = 0; lane < lanes.active; ++lane) {
    vector =
        builder_.CreateInsertElement(vector, scalar(elements + stride * lane), std::uint64_t{lane});
  }
  return vector;
}

Value* BodyEmitter::Holds(const AccessGuard& guard, const Displacement& displacement,
                          const Lanes& lanes, unsigned lane) {
  std::int64_t away = Away(guard.index, displacement);
  if (lane > 0) away += StrideOf(guard.index, lanes.loop) * lane;
  Value* index = builder_.CreateAdd(state_.Index(guard.index), state_.Constant(away));
  // An index below 0 is huge as an unsigned number.
  Value* inside = builder_.CreateICmpULE(index, state_.Constant((guard.size - 1) * guard.divisor));
  if (guard.divisor == 1) return inside;
  Value* rest = builder_.CreateSRem(index, state_.Constant(guard.divisor));
  return builder_.CreateAnd(inside, builder_.CreateICmpEQ(rest, state_.Constant(0)));
}

// In 32 bits, which hold every index of a point that exists.
Value* BodyEmitter::HoldsInLanes(const AccessGuard& guard, const Displacement& displacement,
                                 const Lanes& lanes) {
  const std::int64_t stride = StrideOf(guard.index, lanes.loop);
  if (stride == 0) {
    return builder_.CreateVectorSplat(lanes.width, Holds(guard, displacement, lanes, 0));
  }
  const auto narrow = [&](std::int64_t number) {
    return builder_.getInt32(static_cast<std::uint32_t>(number));
  };
  std::vector<llvm::Constant*> steps;
  for (unsigned lane = 0; lane < lanes.width; ++lane) {
    steps.push_back(narrow(Away(guard.index, displacement) + stride * lane));
  }
  Value* first = builder_.CreateTrunc(state_.Index(guard.index), builder_.getInt32Ty());
  Value* index = builder_.CreateAdd(builder_.CreateVectorSplat(lanes.width, first),
                                    llvm::ConstantVector::get(steps));
  const auto all = [&](std::int64_t number) {
    return builder_.CreateVectorSplat(lanes.width, narrow(number));
  };
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  Value* inside =
      builder_.CreateICmpULE(index, all(std::min((guard.size - 1) * guard.divisor, kLargest)));
  if (guard.divisor == 1) return inside;
  Value* rest = builder_.CreateSRem(index, all(guard.divisor));
  return builder_.CreateAnd(inside, builder_.CreateICmpEQ(rest, all(0)));
}

Value* BodyEmitter::QuotientsOf(const Access& access, const Displacement& displacement,
                                const Lanes& lanes, unsigned lane) {
  Value* elements = state_.Constant(0);
  for (const AccessQuotient& quotient : access.quotients) {
    std::int64_t away = Away(quotient.index, displacement);
    if (lane > 0) away += StrideOf(quotient.index, lanes.loop) * lane;
    Value* index = builder_.CreateAdd(state_.Index(quotient.index), state_.Constant(away));
    Value* whole = builder_.CreateSDiv(index, state_.Constant(quotient.divisor));
    elements =
        builder_.CreateAdd(elements, builder_.CreateMul(whole, state_.Constant(quotient.stride)));
  }
  return elements;
}

Value* BodyEmitter::LoadLane(const Access& access, const Displacement& displacement,
                             const Lanes& lanes, unsigned lane) {
  std::int64_t away = ElementsAway(access, displacement);
  if (lane > 0) away += StrideOf(access, lanes.loop) * lane;
  Value* address = state_.Address(access, away);
  if (!access.quotients.empty()) {
    address = builder_.CreateGEP(builder_.getFloatTy(), address,
                                 QuotientsOf(access, displacement, lanes, lane));
  }
  Values holds;
  for (const AccessGuard& guard : access.guards) {
    holds.push_back(Holds(guard, displacement, lanes, lane));
    address = builder_.CreateSelect(holds.back(), address, state_.Base(access));
  }
  Value* element = builder_.CreateAlignedLoad(builder_.getFloatTy(), address, kFloatAlign);
  for (std::size_t i = access.guards.size(); i-- > 0;) {
    element = builder_.CreateSelect(holds[i], element, Splat(access.guards[i].outside, 1));
  }
  return element;
}

Value* BodyEmitter::LoadUnderGuards(const Access& access, const Displacement& displacement,
                                    const Lanes& lanes) {
  // Guards that are the same for all lanes become one branch, the others the mask.
  Value* branch = nullptr;
  Lanes masked = lanes;
  for (const AccessGuard& guard : access.guards) {
    const bool is_branch = StrideOf(guard.index, lanes.loop) == 0;
    Value*& all = is_branch ? branch : masked.mask;
    Value* holds =
        is_branch ? Holds(guard, displacement, lanes, 0) : HoldsInLanes(guard, displacement, lanes);
    all = all == nullptr ? holds : builder_.CreateAnd(all, holds);
  }
  auto* type = llvm::FixedVectorType::get(builder_.getFloatTy(), lanes.width);
  const auto load = [&]() -> Value* {
    Value* address = state_.Address(access, ElementsAway(access, displacement));
    if (!access.quotients.empty()) {
      address = builder_.CreateGEP(builder_.getFloatTy(), address,
                                   QuotientsOf(access, displacement, lanes, 0));
    }
    if (StrideOf(access, lanes.loop) == 0) {
      return builder_.CreateVectorSplat(
          lanes.width, builder_.CreateAlignedLoad(builder_.getFloatTy(), address, kFloatAlign));
    }
    if (masked.mask == nullptr) return builder_.CreateAlignedLoad(type, address, kFloatAlign);
    return builder_.CreateMaskedLoad(type, address, kFloatAlign, masked.mask,
                                     llvm::Constant::getNullValue(type));
  };
  if (branch == nullptr) return load();
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = builder_.getContext();
  auto* inside = llvm::BasicBlock::Create(context, "inside", function);
  auto* joined = llvm::BasicBlock::Create(context, "joined", function);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  builder_.CreateCondBr(branch, inside, joined);
  builder_.SetInsertPoint(inside);
  Value* loaded = load();
  builder_.CreateBr(joined);
  builder_.SetInsertPoint(joined);
  llvm::PHINode* result = builder_.CreatePHI(type, 2);
  result->addIncoming(llvm::Constant::getNullValue(type), before);
  result->addIncoming(loaded, inside);
  return result;
}

Value* BodyEmitter::LoadGuarded(const Access& access, const Displacement& displacement,
                                const Lanes& lanes) {
  if (lanes.width == 1) return LoadLane(access, displacement, lanes, 0);
  if (IsScattered(access, lanes.loop, shape_)) {
    Value* vector = llvm::Constant::getNullValue(
        llvm::FixedVectorType::get(builder_.getFloatTy(), lanes.width));
    for (unsigned lane = 0; lane < lanes.active; ++lane) {
      vector = builder_.CreateInsertElement(vector, LoadLane(access, displacement, lanes, lane),
                                            std::uint64_t{lane});
    }
    return vector;
  }
  Value* vector = LoadUnderGuards(access, displacement, lanes);
  for (std::size_t i = access.guards.size(); i-- > 0;) {
    const AccessGuard& guard = access.guards[i];
    vector = builder_.CreateSelect(HoldsInLanes(guard, displacement, lanes), vector,
                                   Splat(guard.outside, lanes.width));
  }
  return vector;
}

Value* BodyEmitter::Guarded(Value* value, const std::vector<AccessGuard>& guards,
                            const Displacement& displacement, const Lanes& lanes) {
  for (std::size_t i = guards.size(); i-- > 0;) {
    const AccessGuard& guard = guards[i];
    Value* holds = lanes.width == 1 ? Holds(guard, displacement, lanes, 0)
                                    : HoldsInLanes(guard, displacement, lanes);
    value = builder_.CreateSelect(holds, value, Splat(guard.outside, lanes.width));
  }
  return value;
}

void BodyEmitter::Store(Value* value, const Access& access, const Displacement& displacement,
                        const Lanes& lanes) {
  const std::int64_t elements = ElementsAway(access, displacement);
  const std::int64_t stride = lanes.width > 1 ? StrideOf(access, lanes.loop) : 0;
  StoreLanes(value, access, elements, stride, lanes);
}

void BodyEmitter::StoreLanes(Value* value, const Access& access, std::int64_t elements,
                             std::int64_t stride, const Lanes& lanes) {
  if (lanes.streams && stride == 1 && lanes.mask == nullptr) {
    llvm::StoreInst* store = builder_.CreateAlignedStore(value, state_.Address(access, elements),
                                                         llvm::Align(lanes.width * sizeof(float)));
    auto* one = llvm::ConstantAsMetadata::get(builder_.getInt32(1));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                       llvm::MDNode::get(builder_.getContext(), one));
    return;
  }
  if (lanes.width == 1 || (stride == 1 && lanes.mask == nullptr)) {
    builder_.CreateAlignedStore(value, state_.Address(access, elements), kFloatAlign);
    return;
  }
  if (stride == 1) {
    builder_.CreateMaskedStore(value, state_.Address(access, elements), kFloatAlign, lanes.mask);
    return;
  }
  // Stride 0: every lane is stored to the same element, which is not read. Storing one is enough.
  const unsigned count = stride == 0 ? 1 : lanes.active;
  for (unsigned lane = 0; lane < count; ++lane) {
    builder_.CreateAlignedStore(builder_.CreateExtractElement(value, std::uint64_t{lane}),
                                state_.Address(access, elements + stride * lane), kFloatAlign);
  }
}

BodyEmitter::Values BodyEmitter::OperandsOf(const Statement& statement, const Values& earlier,
                                            const Displacement& displacement, const Lanes& lanes,
                                            LoadCache& cache) {
  Values operands;
  for (const Operand& operand : statement.operands) {
    if (const auto* literal = std::get_if<Literal>(&operand)) {
      Value* number = Splat(literal->value, lanes.width);
      operands.push_back(Guarded(number, literal->guards, displacement, lanes));
    } else if (const auto* value = std::get_if<ValueOf>(&operand)) {
      operands.push_back(Guarded(earlier[value->statement], value->guards, displacement, lanes));
    } else {
      const Access& access = std::get<Access>(operand);
      Value*& loaded = cache.At(access, displacement, lanes);
      if (loaded == nullptr) loaded = Load(access, displacement, lanes);
      operands.push_back(loaded);
    }
  }
  return operands;
}

void BodyEmitter::Emit(const Body& body, const Displacement& displacement, const Lanes& lanes,
                       LoadCache& cache, Value** accumulator) {
  const std::optional<std::uint32_t> fused = FusedProduct(body);
  std::optional<std::pair<Value*, Value*>> product;
  Values values;
  for (std::uint32_t i = 0; i < body.statements.size(); ++i) {
    const Statement& statement = body.statements[i];
    const SourceLines::Scope scope(state_.lines(), builder_, statement);
    const Values operands = OperandsOf(statement, values, displacement, lanes, cache);
    if (i == fused) {
      product.emplace(operands[0], operands[1]);
      values.push_back(nullptr);  // only the sum below uses it
      continue;
    }
    if (statement.reduced.empty()) {
      values.push_back(Compute(statement, operands));
      if (statement.target) Store(values.back(), *statement.target, displacement, lanes);
      continue;
    }
    if (accumulator != nullptr) {
      *accumulator = Accumulate(statement, operands, product, *accumulator);
    } else {
      Value* before = Load(*statement.target, displacement, lanes);
      Store(Accumulate(statement, operands, product, before), *statement.target, displacement,
            lanes);
    }
  }
}

Value* BodyEmitter::Accumulate(const Statement& statement, const Values& operands,
                               const std::optional<std::pair<Value*, Value*>>& product,
                               Value* accumulator) {
  if (product.has_value()) {
    return builder_.CreateIntrinsic(accumulator->getType(), llvm::Intrinsic::fmuladd,
                                    {product->first, product->second, accumulator});
  }
  for (Value* operand : operands) accumulator = Combine(statement.op, accumulator, operand);
  return accumulator;
}

Value* BodyEmitter::Combine(Op op, Value* a, Value* b) {
  switch (op) {
    case Op::kAdd: return builder_.CreateFAdd(a, b);
    case Op::kMultiply: return builder_.CreateFMul(a, b);
    case Op::kMin: return builder_.CreateSelect(builder_.CreateFCmpOLT(a, b), a, b);
    case Op::kMax: return builder_.CreateSelect(builder_.CreateFCmpOGT(a, b), a, b);
    default: LF_CHECK(false, "{} does not combine", looptree::OpName(op)); return nullptr;
  }
}

Value* BodyEmitter::CombineLanes(Op op, Value* vector) {
  unsigned width = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  for (; width > 1; width /= 2) {
    std::vector<int> low;
    std::vector<int> high;
    for (unsigned lane = 0; lane < width / 2; ++lane) {
      low.push_back(static_cast<int>(lane));
      high.push_back(static_cast<int>(lane + width / 2));
    }
    vector = Combine(op, builder_.CreateShuffleVector(vector, low),
                     builder_.CreateShuffleVector(vector, high));
  }
  return builder_.CreateExtractElement(vector, std::uint64_t{0});
}

Value* BodyEmitter::Function(const char* name, Value* (*emit)(llvm::IRBuilderBase&, Value*),
                             const Values& operands) {
  return shape_.fuses ? emit(builder_, operands[0]) : CallEach(name, operands);
}

Value* BodyEmitter::CallEach(const char* name, const Values& operands) {
  llvm::Module* module = builder_.GetInsertBlock()->getModule();
  llvm::Type* number = builder_.getFloatTy();
  auto* type =
      llvm::FunctionType::get(number, std::vector<llvm::Type*>(operands.size(), number), false);
  const llvm::FunctionCallee function = module->getOrInsertFunction(name, type);
  auto* vector_type = llvm::dyn_cast<llvm::FixedVectorType>(operands[0]->getType());
  if (vector_type == nullptr) return builder_.CreateCall(function, operands);
  Value* vector = llvm::PoisonValue::get(vector_type);
  for (std::uint64_t lane = 0; lane < vector_type->getNumElements(); ++lane) {
    Values arguments;
    for (Value* operand : operands) {
      arguments.push_back(builder_.CreateExtractElement(operand, lane));
    }
    vector = builder_.CreateInsertElement(vector, builder_.CreateCall(function, arguments), lane);
  }
  return vector;
}

// floor, ceil, or round half to even. Without an instruction for it: adding 2^23 and taking it away
// again rounds every smaller number to a whole one; the others are whole.
Value* BodyEmitter::Rounded(Op op, Value* x) {
  if (shape_.masks) {
    return builder_.CreateUnaryIntrinsic(op == Op::kFloor  ? llvm::Intrinsic::floor
                                         : op == Op::kCeil ? llvm::Intrinsic::ceil
                                                           : llvm::Intrinsic::roundeven,
                                         x);
  }
  const auto number = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  Value* size = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* nearest = builder_.CreateFSub(builder_.CreateFAdd(size, number(0x1p23)), number(0x1p23));
  nearest = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, nearest, x);
  Value* rounded = nearest;
  if (op == Op::kFloor) {
    rounded = builder_.CreateSelect(builder_.CreateFCmpOGT(nearest, x),
                                    builder_.CreateFSub(nearest, number(1)), nearest);
  } else if (op == Op::kCeil) {
    Value* next = builder_.CreateFAdd(nearest, number(1));
    rounded = builder_.CreateSelect(
        builder_.CreateFCmpOLT(nearest, x),
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, next, x), nearest);
  }
  return builder_.CreateSelect(builder_.CreateFCmpOLT(size, number(0x1p23)), rounded, x);
}

Value* BodyEmitter::Compute(const Statement& statement, const Values& operands) {
  const auto unary = [&](ID id) { return builder_.CreateUnaryIntrinsic(id, operands[0]); };
  const auto number = [&](double value) {
    return llvm::ConstantFP::get(operands[0]->getType(), value);
  };
  const auto one_if = [&](Value* holds) {
    return builder_.CreateSelect(holds, number(1), number(0));
  };
  switch (statement.op) {
    case Op::kCopy: return operands[0];
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kMin:
    case Op::kMax: {
      Value* result = operands[0];
      for (std::size_t i = 1; i < operands.size(); ++i) {
        result = Combine(statement.op, result, operands[i]);
      }
      return result;
    }
    case Op::kSubtract: return builder_.CreateFSub(operands[0], operands[1]);
    case Op::kDivide: return builder_.CreateFDiv(operands[0], operands[1]);
    case Op::kLog: return Function("logf", EmitLog, operands);
    case Op::kExp: return Function("expf", EmitExp, operands);
    case Op::kSqrt: return unary(llvm::Intrinsic::sqrt);
    case Op::kAbs: return unary(llvm::Intrinsic::fabs);
    case Op::kNegate: return builder_.CreateFNeg(operands[0]);
    case Op::kReciprocal: return builder_.CreateFDiv(number(1), operands[0]);
    case Op::kGreater: return one_if(builder_.CreateFCmpOGT(operands[0], operands[1]));
    case Op::kGreaterEqual: return one_if(builder_.CreateFCmpOGE(operands[0], operands[1]));
    case Op::kEqual: return one_if(builder_.CreateFCmpOEQ(operands[0], operands[1]));
    case Op::kSelect:
      return builder_.CreateSelect(builder_.CreateFCmpUNE(operands[0], number(0)), operands[1],
                                   operands[2]);
    case Op::kSign:
      return builder_.CreateSelect(
          builder_.CreateFCmpOGT(operands[0], number(0)), number(1),
          builder_.CreateSelect(builder_.CreateFCmpOLT(operands[0], number(0)), number(-1),
                                number(0)));
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound: return Rounded(statement.op, operands[0]);
    case Op::kTanh: return Function("tanhf", EmitTanh, operands);
    case Op::kErf: return Function("erff", EmitErf, operands);
    case Op::kSin: return CallEach("sinf", operands);
    case Op::kCos: return CallEach("cosf", operands);
    case Op::kPower:
      return shape_.fuses ? EmitPower(builder_, operands[0], operands[1])
                          : CallEach("powf", operands);
    case Op::kConstant:
    case Op::kRead:
    case Op::kView:
    case Op::kWrite:
    case Op::kName: break;  // the plan turned these into copies
  }
  LF_CHECK(false, "{} reached the code generator", looptree::OpName(statement.op));
  return nullptr;
}

}  // namespace loopfleet::worker
