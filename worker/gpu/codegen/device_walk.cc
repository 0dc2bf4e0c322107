#include "worker/gpu/codegen/device_walk.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "worker/cpu/float_math.h"

namespace loopfleet::worker {
namespace {

using llvm::BasicBlock;
using llvm::Value;
using looptree::Op;

std::optional<std::int64_t> ConstantOf(const Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant == nullptr ? std::nullopt : std::optional(constant->getSExtValue());
}

Value* Combine(llvm::IRBuilderBase& builder, Op op, Value* a, Value* b) {
  switch (op) {
    case Op::kAdd: return builder.CreateFAdd(a, b);
    case Op::kMultiply: return builder.CreateFMul(a, b);
    case Op::kMin: return builder.CreateSelect(builder.CreateFCmpOLT(a, b), a, b);
    case Op::kMax: return builder.CreateSelect(builder.CreateFCmpOGT(a, b), a, b);
    default: LF_CHECK(false, "{} does not combine", looptree::OpName(op)); return nullptr;
  }
}

Value* Compute(llvm::IRBuilderBase& builder, Op op, const std::vector<Value*>& operands) {
  const auto number = [&](double value) {
    return llvm::ConstantFP::get(builder.getFloatTy(), value);
  };
  const auto one_if = [&](Value* holds) {
    return builder.CreateSelect(holds, number(1), number(0));
  };
  switch (op) {
    case Op::kCopy: return operands[0];
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kMin:
    case Op::kMax: {
      Value* result = operands[0];
      for (std::size_t i = 1; i < operands.size(); ++i) {
        result = Combine(builder, op, result, operands[i]);
      }
      return result;
    }
    case Op::kSubtract: return builder.CreateFSub(operands[0], operands[1]);
    case Op::kDivide: return builder.CreateFDiv(operands[0], operands[1]);
    case Op::kLog: return EmitLog(builder, operands[0]);
    case Op::kExp: return EmitExp(builder, operands[0]);
    case Op::kSqrt: return builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, operands[0]);
    case Op::kAbs: return builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, operands[0]);
    case Op::kNegate: return builder.CreateFNeg(operands[0]);
    case Op::kReciprocal: return builder.CreateFDiv(number(1), operands[0]);
    case Op::kGreater: return one_if(builder.CreateFCmpOGT(operands[0], operands[1]));
    case Op::kGreaterEqual: return one_if(builder.CreateFCmpOGE(operands[0], operands[1]));
    case Op::kEqual: return one_if(builder.CreateFCmpOEQ(operands[0], operands[1]));
    case Op::kSelect:
      return builder.CreateSelect(builder.CreateFCmpUNE(operands[0], number(0)), operands[1],
                                  operands[2]);
    case Op::kSign:
      return builder.CreateSelect(
          builder.CreateFCmpOGT(operands[0], number(0)), number(1),
          builder.CreateSelect(builder.CreateFCmpOLT(operands[0], number(0)), number(-1),
                               number(0)));
    case Op::kFloor: return builder.CreateUnaryIntrinsic(llvm::Intrinsic::floor, operands[0]);
    case Op::kCeil: return builder.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, operands[0]);
    case Op::kRound: return builder.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, operands[0]);
    case Op::kTanh: return EmitTanh(builder, operands[0]);
    case Op::kErf: return EmitErf(builder, operands[0]);
    case Op::kSin: return EmitSin(builder, operands[0]);
    case Op::kCos: return EmitCos(builder, operands[0]);
    case Op::kPower: return EmitPower(builder, operands[0], operands[1]);
    case Op::kConstant:
    case Op::kRead:
    case Op::kView:
    case Op::kWrite:
    case Op::kName: break;  // the plan turned these into copies
  }
  LF_CHECK(false, "{} reached the code generator", looptree::OpName(op));
  return nullptr;
}

// Becomes a pragma in the PTX.
void ForbidUnrolling(llvm::BranchInst& again) {
  llvm::LLVMContext& context = again.getContext();
  auto* never =
      llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, never});
  loop->replaceOperandWith(0, loop);
  again.setMetadata(llvm::LLVMContext::MD_loop, loop);
}

}  // namespace

DeviceWalk::DeviceWalk(llvm::IRBuilderBase& builder, const KernelPlan& plan, const Stage& stage,
                       const Values& buffers, Unroller& unroller)
    : builder_(builder),
      plan_(plan),
      stage_(stage),
      unroller_(unroller),
      offsets_(plan.loops.size()) {
  for (std::int64_t size : plan.dim_sizes) extents_.push_back(Constant(size));
  if (const auto* loop = std::get_if<LoopStep>(&stage.step->what)) {
    AddAccesses(loop->prepare, buffers);
    AddAccesses(loop->steps, buffers);
  } else {
    for (const Access* access : AccessesOf(std::get<Body>(stage.step->what))) {
      AddAccess(*access, buffers);
    }
  }
}

void DeviceWalk::AddAccesses(const std::vector<Step>& steps, const Values& buffers) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      AddAccesses(loop->prepare, buffers);
      AddAccesses(loop->steps, buffers);
      continue;
    }
    for (const Access* access : AccessesOf(std::get<Body>(step.what))) AddAccess(*access, buffers);
  }
}

void DeviceWalk::AddAccess(const Access& access, const Values& buffers) {
  places_[&access] = {.pointer = buffers[access.buffer], .elements = access.constant};
  for (const AccessTerm& term : access.terms) users_[term.loop].push_back({&access, term.stride});
}

Value* DeviceWalk::Constant(std::int64_t value) const {
  return builder_.getInt32(static_cast<std::uint32_t>(value));
}

// ---- loops -------------------------------------------------------------------------------------

Value* DeviceWalk::Distance(Value* offset, std::int64_t stride, std::int64_t limit) const {
  Value* wide = builder_.CreateSExt(offset, builder_.getInt64Ty());
  if (stride == 1) return wide;
  const bool fits = std::abs(stride) <= std::numeric_limits<std::int32_t>::max() / limit;
  if (fits) {
    return builder_.CreateSExt(builder_.CreateMul(offset, Constant(stride)), builder_.getInt64Ty());
  }
  return builder_.CreateMul(wide, builder_.getInt64(static_cast<std::uint64_t>(stride)));
}

DeviceWalk::Entered DeviceWalk::Enter(LoopId id, Value* offset) {
  const PlanLoop& loop = plan_.loops[id];
  Entered entered{.loop = id, .extent = extents_[loop.dim], .offset = offsets_[id], .places = {}};
  const auto known = ConstantOf(offset);
  std::map<std::int64_t, Value*> distances;
  for (const auto& [access, stride] : users_[id]) {
    Place& place = places_.at(access);
    entered.places.push_back({access, {place.pointer, place.elements}});
    if (known.has_value()) {
      place.elements += *known * stride;
      continue;
    }
    LF_CHECK(place.pointer != nullptr, "an element of a register at an unknown index");
    Value*& distance = distances[stride];
    if (distance == nullptr) distance = Distance(offset, stride, plan_.dim_sizes[loop.dim]);
    place.pointer = builder_.CreateGEP(builder_.getFloatTy(), place.pointer, distance);
  }
  offsets_[id] = offset;
  // The extent left to inner loops: a step, or the tail.
  Value* step = Constant(loop.step);
  const auto extent = ConstantOf(entered.extent);
  const auto divides = [&](std::int64_t possible) { return possible % loop.step == 0; };
  if (extent.has_value() ? divides(*extent) : std::ranges::all_of(loop.extents, divides)) {
    extents_[loop.dim] = step;
  } else {
    Value* left = builder_.CreateSub(entered.extent, offset);
    extents_[loop.dim] = builder_.CreateSelect(builder_.CreateICmpSLT(left, step), left, step);
  }
  return entered;
}

void DeviceWalk::Leave(const Entered& entered) {
  extents_[plan_.loops[entered.loop].dim] = entered.extent;
  offsets_[entered.loop] = entered.offset;
  for (const auto& [access, place] : entered.places) {
    places_.at(access) = {.pointer = place.first, .elements = place.second};
  }
}

void DeviceWalk::Count(Value* start, Value* limit, Value* step, Unroll unroll,
                       const std::function<void(Value*)>& iteration) {
  const auto first = ConstantOf(start);
  const auto end = ConstantOf(limit);
  const auto by = ConstantOf(step);
  if (first && end && *first >= *end) return;
  if (first && end && by && (unroll == Unroll::kYes || *end - *first <= *by)) {
    for (std::int64_t i = *first; i < *end; i += *by) iteration(Constant(i));
    return;
  }
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = builder_.getContext();
  BasicBlock* before = builder_.GetInsertBlock();
  BasicBlock* header = BasicBlock::Create(context, "loop", function);
  BasicBlock* done = BasicBlock::Create(context, "done");
  if (first && end && *first < *end) {
    builder_.CreateBr(header);
  } else {
    builder_.CreateCondBr(builder_.CreateICmpSLT(start, limit), header, done);
  }
  builder_.SetInsertPoint(header);
  llvm::PHINode* i = builder_.CreatePHI(builder_.getInt32Ty(), 2);
  i->addIncoming(start, before);
  iteration(i);
  Value* next = builder_.CreateAdd(i, step);
  i->addIncoming(next, builder_.GetInsertBlock());
  llvm::BranchInst* again =
      builder_.CreateCondBr(builder_.CreateICmpSLT(next, limit), header, done);
  if (unroll == Unroll::kNever) ForbidUnrolling(*again);
  done->insertInto(function);
  builder_.SetInsertPoint(done);
}

void DeviceWalk::RunLoop(LoopId id, const std::function<void()>& iteration) {
  const PlanLoop& loop = plan_.loops[id];
  Value* extent = extents_[loop.dim];
  const Iteration enter = [&](Value* offset) {
    const Entered entered = Enter(id, offset);
    iteration();
    Leave(entered);
  };
  const auto run = [&](Unroll unroll, const Iteration& each) {
    Count(Constant(0), extent, Constant(loop.step), unroll, each);
  };
  if (stage_.unrolled.contains(id)) return run(Unroll::kYes, enter);
  if (loop.annotation != looptree::Annotation::kUnroll) return run(Unroll::kNo, enter);
  const auto known = ConstantOf(extent);
  if (known.has_value() && *known > loop.step) {
    const std::int64_t iterations = (*known + loop.step - 1) / loop.step;
    const std::int64_t copies = unroller_.Copies(id, iterations, 1);
    if (copies == iterations) return run(Unroll::kYes, enter);
    if (copies > 1) return CountPartlyUnrolled(*known, loop.step, copies, enter);
  }
  const std::int64_t most = MostIterations(plan_, id);
  run(Unroll::kNo, [&](Value* offset) {
    unroller_.EnterIteration(id, most);
    enter(offset);
    unroller_.LeaveIteration();
  });
}

void DeviceWalk::CountPartlyUnrolled(std::int64_t extent, std::int64_t step, std::int64_t copies,
                                     const Iteration& iteration) {
  const std::int64_t middle = extent / (step * copies) * (step * copies);
  Count(Constant(0), Constant(middle), Constant(step * copies), Unroll::kNo, [&](Value* offset) {
    for (std::int64_t i = 0; i < copies; ++i) {
      iteration(builder_.CreateAdd(offset, Constant(i * step)));
    }
  });
  Count(Constant(middle), Constant(extent), Constant(step), Unroll::kNo, iteration);
}

void DeviceWalk::If(Value* condition, const std::function<void()>& then) {
  if (condition == nullptr) return then();
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  BasicBlock* yes = BasicBlock::Create(builder_.getContext(), "then", function);
  BasicBlock* done = BasicBlock::Create(builder_.getContext(), "done");
  builder_.CreateCondBr(condition, yes, done);
  builder_.SetInsertPoint(yes);
  then();
  builder_.CreateBr(done);
  done->insertInto(function);
  builder_.SetInsertPoint(done);
}

Value* DeviceWalk::And(Value* a, Value* b) const {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  return builder_.CreateAnd(a, b);
}

Value* DeviceWalk::EnterNumbered(const std::vector<const LoopStep*>& loops, Value* number,
                                 std::vector<Entered>& entered) {
  // Computes each loop's index first, because the outer loops must be entered first.
  Values indices(loops.size());
  for (std::size_t i = loops.size(); i-- > 0;) {
    const std::int64_t count = MostIterations(plan_, loops[i]->loop);
    if (count == 1) {
      indices[i] = Constant(0);
    } else if (i == 0) {
      indices[i] = number;
    } else {
      indices[i] = builder_.CreateURem(number, Constant(count));
      number = builder_.CreateUDiv(number, Constant(count));
    }
  }
  Value* exists = nullptr;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const PlanLoop& loop = plan_.loops[loops[i]->loop];
    Value* offset = builder_.CreateMul(indices[i], Constant(loop.step));
    Value* extent = extents_[loop.dim];
    // Only the largest extent has all iterations.
    if (loop.extents.size() > 1) exists = And(exists, builder_.CreateICmpSLT(offset, extent));
    entered.push_back(Enter(loops[i]->loop, offset));
  }
  return exists;
}

// ---- memory ------------------------------------------------------------------------------------

Value* DeviceWalk::Pointer(const Access& access, std::int64_t elements) const {
  const Place& place = places_.at(&access);
  LF_CHECK(place.pointer != nullptr, "the address of a register");
  return builder_.CreateGEP(
      builder_.getFloatTy(), place.pointer,
      builder_.getInt64(static_cast<std::uint64_t>(place.elements + elements)));
}

Value* DeviceWalk::Register(const Access& access) {
  Value*& variable = registers_[{access.buffer, places_.at(&access).elements}];
  if (variable == nullptr) variable = NewVariable(nullptr);
  return variable;
}

Value* DeviceWalk::IndexAt(const PlanIndex& index) const {
  Value* sum = Constant(index.constant);
  for (const AccessTerm& term : index.terms) {
    sum = builder_.CreateAdd(sum, builder_.CreateMul(offsets_[term.loop], Constant(term.stride)));
  }
  return sum;
}

Value* DeviceWalk::Holds(const AccessGuard& guard) const {
  Value* index = IndexAt(guard.index);
  // An index below 0 is huge as an unsigned number.
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  const std::int64_t most = std::min((guard.size - 1) * guard.divisor, kLargest);
  Value* inside = builder_.CreateICmpULE(index, Constant(most));
  if (guard.divisor == 1) return inside;
  Value* rest = builder_.CreateURem(index, Constant(guard.divisor));
  return builder_.CreateAnd(inside, builder_.CreateICmpEQ(rest, Constant(0)));
}

Value* DeviceWalk::Guarded(const std::vector<AccessGuard>& guards,
                           const std::function<Value*()>& inside) {
  if (guards.empty()) return inside();
  Value* result = NewVariable(nullptr);
  Value* all = nullptr;
  for (std::size_t i = guards.size(); i-- > 0;) {
    // The first guard that fails comes last, and so decides.
    Value* outside = llvm::ConstantFP::get(builder_.getFloatTy(),
                                           llvm::APFloat(static_cast<float>(guards[i].outside)));
    Value* holds = Holds(guards[i]);
    Set(result, all == nullptr ? outside : builder_.CreateSelect(holds, Get(result), outside));
    all = And(all, holds);
  }
  If(all, [&] { Set(result, inside()); });
  return Get(result);
}

Value* DeviceWalk::LoadGuarded(const Access& access) {
  return Guarded(access.guards, [&]() -> Value* {
    if (access.quotients.empty()) return Load(access);
    Value* pointer = Pointer(access);
    for (const AccessQuotient& quotient : access.quotients) {
      Value* whole = builder_.CreateUDiv(IndexAt(quotient.index), Constant(quotient.divisor));
      Value* wide = builder_.CreateZExt(whole, builder_.getInt64Ty());
      pointer = builder_.CreateGEP(
          builder_.getFloatTy(), pointer,
          builder_.CreateMul(wide, builder_.getInt64(static_cast<std::uint64_t>(quotient.stride))));
    }
    return builder_.CreateAlignedLoad(builder_.getFloatTy(), pointer, llvm::Align(4));
  });
}

Value* DeviceWalk::Load(const Access& access) {
  if (stage_.registers.contains(access.buffer)) return Get(Register(access));
  return builder_.CreateAlignedLoad(builder_.getFloatTy(), Pointer(access), llvm::Align(4));
}

void DeviceWalk::Store(Value* value, const Access& access) {
  if (stage_.registers.contains(access.buffer)) return Set(Register(access), value);
  builder_.CreateAlignedStore(value, Pointer(access), llvm::Align(4));
}

Value* DeviceWalk::NewVariable(Value* initial) {
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  llvm::IRBuilder<> entry(&function->getEntryBlock(), function->getEntryBlock().begin());
  Value* variable = entry.CreateAlloca(entry.getFloatTy());
  variables_.push_back(variable);
  if (initial != nullptr) Set(variable, initial);
  return variable;
}

Value* DeviceWalk::Get(Value* variable) const {
  return builder_.CreateLoad(builder_.getFloatTy(), variable);
}

void DeviceWalk::Set(Value* variable, Value* value) const { builder_.CreateStore(value, variable); }

void DeviceWalk::PromoteVariables() {
  if (variables_.empty()) return;
  llvm::DominatorTree tree(*builder_.GetInsertBlock()->getParent());
  std::vector<llvm::AllocaInst*> allocas;
  for (Value* variable : variables_) allocas.push_back(llvm::cast<llvm::AllocaInst>(variable));
  llvm::PromoteMemToReg(allocas, tree);
  variables_.clear();
}

// ---- operations --------------------------------------------------------------------------------

DeviceWalk::BodyValues DeviceWalk::Evaluate(const Body& body, const LoadOperand& load) {
  const std::optional<std::uint32_t> fused = FusedProduct(body);
  BodyValues result;
  for (std::uint32_t i = 0; i < body.statements.size(); ++i) {
    const Statement& statement = body.statements[i];
    Values operands;
    for (const Operand& operand : statement.operands) {
      if (const auto* literal = std::get_if<Literal>(&operand)) {
        operands.push_back(Guarded(literal->guards, [&] {
          return llvm::ConstantFP::get(builder_.getFloatTy(),
                                       llvm::APFloat(static_cast<float>(literal->value)));
        }));
      } else if (const auto* value = std::get_if<ValueOf>(&operand)) {
        operands.push_back(Guarded(value->guards, [&] { return result.values[value->statement]; }));
      } else {
        operands.push_back(load(std::get<Access>(operand)));
      }
    }
    if (i == fused) {
      result.left = operands[0];
      result.right = operands[1];
      result.values.push_back(nullptr);
    } else if (!statement.reduced.empty()) {
      result.last_operands = std::move(operands);
      result.values.push_back(nullptr);
    } else {
      result.values.push_back(Compute(builder_, statement.op, operands));
    }
  }
  return result;
}

Value* DeviceWalk::Accumulate(const Statement& reduction, const BodyValues& values,
                              Value* accumulator) {
  if (values.left != nullptr) {
    return builder_.CreateIntrinsic(builder_.getFloatTy(), llvm::Intrinsic::fmuladd,
                                    {values.left, values.right, accumulator});
  }
  for (Value* operand : values.last_operands) {
    accumulator = Combine(builder_, reduction.op, accumulator, operand);
  }
  return accumulator;
}

void DeviceWalk::RunBody(const Body& body) {
  If(AtFirst(body.once), [&] {
    const BodyValues values =
        Evaluate(body, [&](const Access& access) { return LoadGuarded(access); });
    for (std::uint32_t i = 0; i < body.statements.size(); ++i) {
      const Statement& statement = body.statements[i];
      if (!statement.target.has_value()) continue;
      Value* value = statement.reduced.empty()
                         ? values.values[i]
                         : Accumulate(statement, values, Load(*statement.target));
      Store(value, *statement.target);
    }
  });
}

Value* DeviceWalk::AtFirst(const std::vector<LoopId>& once) const {
  Value* first = nullptr;
  for (LoopId loop : once) {
    const auto known = ConstantOf(offsets_[loop]);
    if (known == 0) continue;
    first = And(first, builder_.CreateICmpEQ(offsets_[loop], Constant(0)));
  }
  return first;
}

}  // namespace loopfleet::worker
