#include "worker/cpu/loop_state.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>

#include "common/base/check.h"
#include "worker/cpu/source_lines.h"
#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {
namespace {

using llvm::BasicBlock;
using llvm::ConstantInt;
using llvm::PHINode;
using llvm::Value;

std::optional<std::int64_t> ConstantOf(const Value* value) {
  const auto* constant = llvm::dyn_cast<ConstantInt>(value);
  return constant == nullptr ? std::nullopt : std::optional(constant->getSExtValue());
}

std::int64_t Iterations(std::int64_t extent, std::int64_t step) {
  return (extent + step - 1) / step;
}

}  // namespace

LoopState::LoopState(llvm::IRBuilderBase& builder, const KernelPlan& plan, const Values& buffers,
                     Unroller& unroller, SourceLines* lines)
    : builder_(builder),
      plan_(plan),
      unroller_(unroller),
      lines_(lines),
      offsets_(plan.loops.size()),
      users_(plan.loops.size()) {
  for (std::int64_t size : plan.dim_sizes) extents_.push_back(Constant(size));
  AddUsers(plan.steps, buffers);
}

Value* LoopState::Constant(std::int64_t value) const {
  return builder_.getInt64(static_cast<std::uint64_t>(value));
}

void LoopState::AddUsers(const std::vector<Step>& steps, const Values& buffers) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      AddUsers(loop->prepare, buffers);
      AddUsers(loop->steps, buffers);
      continue;
    }
    const Body& body = std::get<Body>(step.what);
    for (const Access* access : AccessesOf(body)) AddUser(*access, buffers);
    for (const PlanIndex* index : IndicesOf(body)) {
      indices_[index] = addresses_.size();
      AddUser(Constant(index->constant), index->terms);
    }
  }
}

void LoopState::AddUser(const Access& access, const Values& buffers) {
  index_[&access] = addresses_.size();
  AddUser(Moved(buffers[access.buffer], Constant(access.constant)), access.terms);
  if (access.guards.empty()) return;
  bases_[&access] = addresses_.size();
  addresses_.push_back(buffers[access.buffer]);
}

void LoopState::AddUser(Value* start, const std::vector<AccessTerm>& terms) {
  for (const AccessTerm& term : terms) {
    users_[term.loop].push_back({addresses_.size(), term.stride});
  }
  addresses_.push_back(start);
}

std::int64_t LoopState::ConstantExtent(looptree::DimId dim) const {
  return ConstantOf(extents_[dim]).value_or(0);
}

// A move by zero elements emits no instruction. These would be a fifth of a module, and trees that
// differ only in them could not share a cached object.
Value* LoopState::Moved(Value* address, Value* elements) const {
  if (ConstantOf(elements) == 0) return address;
  if (address->getType()->isIntegerTy()) return builder_.CreateAdd(address, elements);
  return builder_.CreateGEP(builder_.getFloatTy(), address, elements);
}

Value* LoopState::Address(const Access& access, std::int64_t elements) const {
  return Moved(addresses_[index_.at(&access)], Constant(elements));
}

Value* LoopState::Base(const Access& access) const { return addresses_[bases_.at(&access)]; }

Value* LoopState::Index(const PlanIndex& index) const { return addresses_[indices_.at(&index)]; }

LoopState::Values LoopState::AddressesOfUsers(LoopId loop) const {
  Values addresses;
  for (const User& user : users_[loop]) addresses.push_back(addresses_[user.place]);
  return addresses;
}

void LoopState::SetAddressesOfUsers(LoopId loop, const Values& addresses) {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    addresses_[users_[loop][i].place] = addresses[i];
  }
}

LoopState::Values LoopState::MovedAddresses(LoopId loop, const Values& addresses,
                                            Value* elements) const {
  Values moved;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    Value* distance = builder_.CreateMul(elements, Constant(users_[loop][i].stride));
    moved.push_back(Moved(addresses[i], distance));
  }
  return moved;
}

LoopState::Values LoopState::Run(const Range& range, const Values& carried,
                                 const Iteration& iteration) {
  const SourceLines::Scope scope(lines_, builder_, range.loop);
  const std::optional<std::int64_t> start = ConstantOf(range.start);
  const std::optional<std::int64_t> limit = ConstantOf(range.limit);
  if (start.has_value() && limit.has_value()) {
    if (*start >= *limit) return carried;
    if (*limit - *start <= range.step) {
      return RunUnrolled(range, *start, *limit, carried, iteration);
    }
  }
  if (!range.unroll) return RunRolled(range, carried, iteration);
  const PlanLoop& loop = plan_.loops[range.loop];
  if (start.has_value() && limit.has_value()) {
    const std::int64_t iterations = Iterations(*limit - *start, range.step);
    const std::int64_t copies =
        unroller_.Copies(range.loop, iterations, std::max<std::int64_t>(1, range.step / loop.step));
    if (copies == iterations) return RunUnrolled(range, *start, *limit, carried, iteration);
    if (copies > 1) {
      return RunPartlyUnrolled(range, *start, *limit, copies, carried, iteration);
    }
  }
  const std::int64_t most = Iterations(loop.extents.front(), range.step);
  return RunRolled(range, carried, [&](Value* offset, const Values& inside) {
    unroller_.EnterIteration(range.loop, most);
    Values results = iteration(offset, inside);
    unroller_.LeaveIteration();
    return results;
  });
}

LoopState::Values LoopState::RunPartlyUnrolled(const Range& range, std::int64_t start,
                                               std::int64_t limit, std::int64_t copies,
                                               const Values& carried, const Iteration& iteration) {
  const std::int64_t step = range.step * copies;
  Value* middle = Constant(start + (limit - start) / step * step);
  Range main = range;
  main.limit = middle;
  main.step = step;
  main.unroll = false;
  const Values results = Run(main, carried, [&](Value* offset, const Values& inside) {
    const Values here = AddressesOfUsers(range.loop);
    Values values = inside;
    for (std::int64_t i = 0; i < copies; ++i) {
      Value* ahead = Constant(i * range.step);
      SetAddressesOfUsers(range.loop, MovedAddresses(range.loop, here, ahead));
      values = iteration(builder_.CreateAdd(offset, ahead), values);
    }
    SetAddressesOfUsers(range.loop, here);
    return values;
  });
  Range rest = range;
  rest.start = middle;
  rest.unroll = false;
  return Run(rest, results, iteration);
}

LoopState::Values LoopState::RunUnrolled(const Range& range, std::int64_t start, std::int64_t limit,
                                         Values carried, const Iteration& iteration) {
  const Values outside = AddressesOfUsers(range.loop);
  for (std::int64_t offset = start; offset < limit; offset += range.step) {
    SetAddressesOfUsers(range.loop, MovedAddresses(range.loop, outside, Constant(offset)));
    carried = iteration(Constant(offset), carried);
  }
  SetAddressesOfUsers(range.loop, outside);
  return carried;
}

LoopState::Values LoopState::RunRolled(const Range& range, const Values& carried,
                                       const Iteration& iteration) {
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = builder_.getContext();
  BasicBlock* header = BasicBlock::Create(context, "loop", function);
  BasicBlock* done = BasicBlock::Create(context, "done");
  const Values outside = AddressesOfUsers(range.loop);
  const Values first = MovedAddresses(range.loop, outside, range.start);
  BasicBlock* before = builder_.GetInsertBlock();
  const bool guarded = range.may_be_empty && !(ConstantOf(range.start) && ConstantOf(range.limit));
  if (guarded) {
    builder_.CreateCondBr(builder_.CreateICmpSLT(range.start, range.limit), header, done);
  } else {
    builder_.CreateBr(header);
  }

  builder_.SetInsertPoint(header);
  const auto phis_of = [&](const Values& initial) {
    Values phis;
    for (Value* value : initial) {
      PHINode* phi = builder_.CreatePHI(value->getType(), 2);
      phi->addIncoming(value, before);
      phis.push_back(phi);
    }
    return phis;
  };
  const Values offset = phis_of({range.start});
  const Values addresses = phis_of(first);
  const Values inside = phis_of(carried);
  SetAddressesOfUsers(range.loop, addresses);
  const Values results = iteration(offset[0], inside);
  SetAddressesOfUsers(range.loop, outside);
  LF_CHECK(results.size() == carried.size(), "{} carried in, {} out", carried.size(),
           results.size());

  Value* next_offset = builder_.CreateAdd(offset[0], Constant(range.step));
  const Values next_addresses = MovedAddresses(range.loop, addresses, Constant(range.step));
  BasicBlock* latch = builder_.GetInsertBlock();
  const auto close = [&](const Values& phis, const Values& next) {
    for (std::size_t i = 0; i < phis.size(); ++i) {
      llvm::cast<PHINode>(phis[i])->addIncoming(next[i], latch);
    }
  };
  close(offset, {next_offset});
  close(addresses, next_addresses);
  close(inside, results);
  builder_.CreateCondBr(builder_.CreateICmpSLT(next_offset, range.limit), header, done);

  done->insertInto(function);
  builder_.SetInsertPoint(done);
  if (!guarded) return results;
  Values merged;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    PHINode* phi = builder_.CreatePHI(carried[i]->getType(), 2);
    phi->addIncoming(carried[i], before);
    phi->addIncoming(results[i], latch);
    merged.push_back(phi);
  }
  return merged;
}

Value* LoopState::InnerExtent(const PlanLoop& loop, Value* extent, Value* offset) const {
  Value* step = Constant(loop.step);
  const auto divides = [&](std::int64_t possible) { return possible % loop.step == 0; };
  const std::optional<std::int64_t> known = ConstantOf(extent);
  if (known.has_value() ? divides(*known) : std::ranges::all_of(loop.extents, divides)) {
    return step;
  }
  Value* left = builder_.CreateSub(extent, offset);
  if (const auto constant = ConstantOf(left)) return Constant(std::min(*constant, loop.step));
  return builder_.CreateSelect(builder_.CreateICmpSLT(left, step), left, step);
}

LoopState::Values LoopState::RunWhole(LoopId id, const Values& carried,
                                      const Iteration& iteration) {
  const PlanLoop& loop = plan_.loops[id];
  Value* extent = extents_[loop.dim];
  const Range range{.loop = id,
                    .start = Constant(0),
                    .limit = extent,
                    .step = loop.step,
                    .may_be_empty = false,
                    .unroll = AsksForUnrolling(id)};
  Values results = Run(range, carried, [&](Value* offset, const Values& inside) {
    extents_[loop.dim] = InnerExtent(loop, extent, offset);
    offsets_[id] = offset;
    return iteration(offset, inside);
  });
  extents_[loop.dim] = extent;
  return results;
}

void LoopState::RunPart(LoopId id, const Bounds& bounds,
                        const std::function<void(llvm::Value* offset)>& iteration) {
  const PlanLoop& loop = plan_.loops[id];
  Value* extent = extents_[loop.dim];
  const Range range{.loop = id,
                    .start = bounds.start,
                    .limit = bounds.limit,
                    .step = loop.step,
                    .may_be_empty = true,
                    .unroll = false};
  Run(range, {}, [&](Value* offset, const Values&) {
    extents_[loop.dim] = InnerExtent(loop, extent, offset);
    offsets_[id] = offset;
    iteration(offset);
    return Values{};
  });
  extents_[loop.dim] = extent;
}

void LoopState::Within(LoopId id, const Bounds& bounds, const std::function<void()>& emit) {
  const SourceLines::Scope scope(lines_, builder_, id);
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  BasicBlock* part = BasicBlock::Create(builder_.getContext(), "part", function);
  BasicBlock* done = BasicBlock::Create(builder_.getContext(), "done");
  builder_.CreateCondBr(builder_.CreateICmpSLT(bounds.start, bounds.limit), part, done);
  builder_.SetInsertPoint(part);
  Value*& extent = extents_[plan_.loops[id].dim];
  Value* const whole = extent;
  const Values outside = AddressesOfUsers(id);
  SetAddressesOfUsers(id, MovedAddresses(id, outside, bounds.start));
  extent = builder_.CreateSub(bounds.limit, bounds.start);
  emit();
  extents_[plan_.loops[id].dim] = whole;
  SetAddressesOfUsers(id, outside);
  builder_.CreateBr(done);
  done->insertInto(function);
  builder_.SetInsertPoint(done);
}

std::vector<LoopState::Place> LoopState::PlacesIn(const LoopStep& step) {
  std::vector<Place> places;
  for (Value*& extent : extents_) {
    if (!ConstantOf(extent)) places.push_back({&extent, nullptr});
  }
  std::set<LoopId> once;
  AddPlaces(step.prepare, places, once);
  AddPlaces(step.steps, places, once);
  // Loops inside `step` will set their own offsets. Those outside are running.
  for (LoopId loop : once) {
    const bool running = loop < step.loop && offsets_[loop] != nullptr;
    if (running && !ConstantOf(offsets_[loop])) places.push_back({&offsets_[loop], nullptr});
  }
  return places;
}

void LoopState::AddPlaces(const std::vector<Step>& steps, std::vector<Place>& places,
                          std::set<LoopId>& once) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      AddPlaces(loop->prepare, places, once);
      AddPlaces(loop->steps, places, once);
      continue;
    }
    const Body& body = std::get<Body>(step.what);
    once.insert(body.once.begin(), body.once.end());
    for (const Access* access : AccessesOf(body)) {
      places.push_back({&addresses_[index_.at(access)], access});
      if (!access->guards.empty()) places.push_back({&addresses_[bases_.at(access)], access});
    }
    for (const PlanIndex* index : IndicesOf(body)) {
      Value*& value = addresses_[indices_.at(index)];
      if (!ConstantOf(value)) places.push_back({&value, nullptr});
    }
  }
}

}  // namespace loopfleet::worker
