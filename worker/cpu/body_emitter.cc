#include "worker/cpu/body_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Metadata.h>

#include "common/base/check.h"

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

// The multiplication whose product is used only by the sum that ends the body: the two become one
// fused operation. nullopt: the body has none.
std::optional<std::uint32_t> FusedProduct(const Body& body) {
  const Statement& last = body.statements.back();
  if (last.reduced.empty() || last.op != Op::kAdd || last.operands.size() != 1) return std::nullopt;
  const ValueOf* value = std::get_if<ValueOf>(&last.operands[0]);
  if (value == nullptr) return std::nullopt;
  const Statement& product = body.statements[value->statement];
  if (product.op != Op::kMultiply || product.operands.size() != 2 || product.target.has_value()) {
    return std::nullopt;
  }
  for (std::size_t i = value->statement + 1; i + 1 < body.statements.size(); ++i) {
    for (const Operand& operand : body.statements[i].operands) {
      const ValueOf* other = std::get_if<ValueOf>(&operand);
      if (other != nullptr && other->statement == value->statement) return std::nullopt;
    }
  }
  return value->statement;
}

}  // namespace

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
      operands.push_back(Splat(literal->value, lanes.width));
    } else if (const auto* value = std::get_if<ValueOf>(&operand)) {
      operands.push_back(earlier[value->statement]);
    } else {
      const Access& access = std::get<Access>(operand);
      Value*& loaded = cache.At(access, ElementsAway(access, displacement), lanes);
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

Value* BodyEmitter::Compute(const Statement& statement, const Values& operands) {
  const auto unary = [&](ID id) { return builder_.CreateUnaryIntrinsic(id, operands[0]); };
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
    case Op::kLog: return unary(llvm::Intrinsic::log);
    case Op::kExp: return unary(llvm::Intrinsic::exp);
    case Op::kSqrt: return unary(llvm::Intrinsic::sqrt);
    case Op::kAbs: return unary(llvm::Intrinsic::fabs);
    case Op::kNegate: return builder_.CreateFNeg(operands[0]);
    case Op::kReciprocal: {
      llvm::Constant* one = llvm::ConstantFP::get(operands[0]->getType(), 1.0);
      return builder_.CreateFDiv(one, operands[0]);
    }
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
