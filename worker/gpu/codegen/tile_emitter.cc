#include "worker/gpu/codegen/tile_emitter.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <utility>

namespace loopfleet::worker {

using llvm::Value;

Value* TileEmitter::Smaller(Value* a, Value* b) const {
  return builder_.CreateSelect(builder_.CreateICmpSLT(a, b), a, b);
}

Value* TileEmitter::Wide(Value* narrow, std::int64_t stride) const {
  Value* wide = builder_.CreateSExt(narrow, builder_.getInt64Ty());
  return builder_.CreateMul(wide, builder_.getInt64(static_cast<std::uint64_t>(stride)));
}

std::int64_t TileEmitter::StrideAlong(const TileAxis& axis, const Access& access) const {
  return axis.dim.has_value() ? StrideOf(access, axis.loop) : 0;
}

std::int64_t TileEmitter::LocalConstant(const TileAxis& axis, std::int64_t index) const {
  return index / axis.group() * axis.threads * axis.group() + index % axis.group();
}

TileEmitter::Position TileEmitter::PositionOf(const TileAxis& axis, const Here& here,
                                              std::int64_t index, std::int64_t width) const {
  Value* base =
      builder_.CreateAdd(here.start, builder_.CreateMul(here.thread, walk_.Constant(axis.group())));
  const std::int64_t constant = LocalConstant(axis, index);
  if (!HangsOver(axis)) return {base, constant};
  base = builder_.CreateAdd(base, walk_.Constant(constant));
  return {Smaller(base, walk_.Constant(axis.extent - width)), 0};
}

Value* TileEmitter::InRange(const TileAxis& axis, const Here& here, std::int64_t index) const {
  if (!HangsOver(axis)) return nullptr;
  Value* base =
      builder_.CreateAdd(here.start, builder_.CreateMul(here.thread, walk_.Constant(axis.group())));
  base = builder_.CreateAdd(base, walk_.Constant(LocalConstant(axis, index)));
  return builder_.CreateICmpSLT(base, walk_.Constant(axis.extent));
}

// Blocks are numbered with x fastest, then y, then the others.
void TileEmitter::EnterBlock() {
  Value* number = abi_.Block(builder_);
  const auto take = [&](const TileAxis& axis) -> Value* {
    const std::int64_t blocks = axis.blocks();
    if (blocks == 1) return walk_.Constant(0);
    Value* index = builder_.CreateURem(number, walk_.Constant(blocks));
    number = builder_.CreateUDiv(number, walk_.Constant(blocks));
    return builder_.CreateMul(index, walk_.Constant(axis.block));
  };
  x_.start = take(tile_.x);
  y_.start = take(tile_.y);
  for (const TileAxis& axis : tile_.others) walk_.Enter(axis.loop, take(axis));
  Value* thread = abi_.Thread(builder_);
  if (tile_.y.threads == 1) {
    x_.thread = thread;
    y_.thread = walk_.Constant(0);
  } else {
    x_.thread = builder_.CreateURem(thread, walk_.Constant(tile_.x.threads));
    y_.thread = builder_.CreateUDiv(thread, walk_.Constant(tile_.x.threads));
  }
}

void TileEmitter::Emit() {
  EnterBlock();
  const Body& body = *tile_.nest.body;
  const Statement* reduction = tile_.nest.reduction();
  if (reduction == nullptr) {
    Loaded loaded;
    StoreAll([&](std::int64_t x, std::int64_t y) {
      const auto values = walk_.Evaluate(
          body, [&](const Access& access) { return Operand(access, x, y, nullptr, loaded); });
      return values.values.back();
    });
    return;
  }
  const auto identity = static_cast<float>(ReductionIdentity(reduction->op));
  for (std::int64_t i = 0; i < tile_.x.each * tile_.y.each; ++i) {
    accumulators_.push_back(
        walk_.NewVariable(llvm::ConstantFP::get(builder_.getFloatTy(), llvm::APFloat(identity))));
  }
  if (tile_.shared_elements > 0) shared_ = abi_.Shared(builder_, tile_.shared_elements * 4);
  RunReduced(0);
  StoreAll([&](std::int64_t x, std::int64_t y) {
    return walk_.Get(accumulators_[static_cast<std::size_t>(y * tile_.x.each + x)]);
  });
}

void TileEmitter::RunReduced(std::size_t level) {
  const LoopId loop = tile_.reduced[level];
  const bool innermost = level + 1 == tile_.reduced.size();
  if (innermost && !tile_.staged.empty()) return RunStaged(loop);
  walk_.RunLoop(loop, [&] {
    if (innermost) {
      Step(nullptr);
    } else {
      RunReduced(level + 1);
    }
  });
}

// Fetches the next slice from memory while the threads work on the current one.
void TileEmitter::RunStaged(LoopId innermost) {
  Value* extent = walk_.extent(plan_.loops[innermost].dim);
  Value* depth = walk_.Constant(tile_.depth);
  std::vector<Slice> slices;
  for (const StagedOperand& staged : tile_.staged) slices.push_back(SliceOf(staged));
  const auto fetch = [&](Value* start) {
    for (const Slice& slice : slices) Fetch(slice, start, extent);
  };
  fetch(walk_.Constant(0));
  walk_.Count(walk_.Constant(0), extent, depth, DeviceWalk::Unroll::kNever, [&](Value* start) {
    abi_.Wait(builder_);  // until no thread reads the previous slice
    for (const Slice& slice : slices) Put(slice);
    abi_.Wait(builder_);
    Value* next = builder_.CreateAdd(start, depth);
    Value* goes_on = builder_.CreateICmpSLT(next, extent);
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(goes_on);
    if (known == nullptr || known->isOne()) walk_.If(goes_on, [&] { fetch(next); });
    Value* steps = tile_.whole_depth ? depth : Smaller(depth, builder_.CreateSub(extent, start));
    const std::int64_t unrolled_steps = tile_.unrolled_steps;
    const auto unroll = unrolled_steps > 1 ? DeviceWalk::Unroll::kNever : DeviceWalk::Unroll::kNo;
    walk_.Count(walk_.Constant(0), steps, walk_.Constant(unrolled_steps), unroll,
                [&](Value* first) {
                  thread_shared_.clear();
                  for (std::int64_t i = 0; i < unrolled_steps; ++i) {
                    Value* at = builder_.CreateAdd(first, walk_.Constant(i));
                    const auto entered = walk_.Enter(innermost, builder_.CreateAdd(start, at));
                    const Depth here{.first = first, .constant = i};
                    Step(&here);
                    walk_.Leave(entered);
                  }
                });
  });
}

TileEmitter::Slice TileEmitter::SliceOf(const StagedOperand& staged) {
  const TileAxis& axis = staged.along_x ? tile_.x : tile_.y;
  const Here& here = staged.along_x ? x_ : y_;
  const std::int64_t threads = tile_.x.threads * tile_.y.threads;
  const std::int64_t unit = staged.vectors ? 4 : 1;
  const std::int64_t total = axis.block * tile_.depth / unit;
  const std::int64_t in_row = (staged.axis_fastest ? axis.block : tile_.depth) / unit;
  Value* operand = walk_.Pointer(*staged.access);
  // If even, a thread's portions lie whole rows apart, so one address serves all of them.
  const bool is_even =
      threads % in_row == 0 && (staged.axis_fastest ? tile_.whole_depth : !HangsOver(axis));
  Slice slice{.staged = &staged, .portions = {}};
  for (std::int64_t first = 0; first < total; first += threads) {
    Portion portion;
    const bool is_whole = first + threads <= total;
    if (is_even && is_whole && first > 0) {
      const Portion& leader = slice.portions.front();
      const std::int64_t rows = first / in_row;
      portion = {.from = leader.from, .step = leader.step, .place = leader.place};
      portion.further = rows * (staged.axis_fastest ? staged.depth_stride : staged.axis_stride);
      portion.place_further = rows * (staged.axis_fastest ? staged.pitch : 1);
    } else {
      Value* index = builder_.CreateAdd(abi_.Thread(builder_), walk_.Constant(first));
      if (!is_whole) {
        portion.exists = builder_.CreateICmpSLT(index, walk_.Constant(total));
        index = Smaller(index, walk_.Constant(total - 1));
      }
      Value* fast = builder_.CreateMul(builder_.CreateURem(index, walk_.Constant(in_row)),
                                       walk_.Constant(unit));
      Value* slow = builder_.CreateUDiv(index, walk_.Constant(in_row));
      Value* along_axis = staged.axis_fastest ? fast : slow;
      Value* along_depth = staged.axis_fastest ? slow : fast;
      Value* element = builder_.CreateAdd(here.start, along_axis);
      if (HangsOver(axis)) {
        const std::int64_t last = axis.extent - (staged.axis_fastest ? unit : 1);
        element = Smaller(element, walk_.Constant(last));
      }
      Value* distance = Wide(element, staged.axis_stride);
      if (tile_.whole_depth) {
        distance = builder_.CreateAdd(distance, Wide(along_depth, staged.depth_stride));
      } else {
        portion.step = along_depth;
      }
      portion.from = builder_.CreateGEP(builder_.getFloatTy(), operand, distance);
      portion.place =
          builder_.CreateAdd(builder_.CreateMul(along_depth, walk_.Constant(staged.pitch)),
                             builder_.CreateAdd(along_axis, walk_.Constant(staged.offset)));
    }
    for (std::int64_t i = 0; i < unit; ++i) portion.held.push_back(walk_.NewVariable(nullptr));
    slice.portions.push_back(std::move(portion));
  }
  return slice;
}

// Loads a slice from memory into registers.
void TileEmitter::Fetch(const Slice& slice, Value* depth_start, Value* depth_extent) {
  const StagedOperand& staged = *slice.staged;
  std::map<std::pair<Value*, Value*>, Value*> moved;  // by Portion::from and ::step
  for (const Portion& portion : slice.portions) {
    Value*& at = moved[{portion.from, portion.step}];
    if (at == nullptr) {
      Value* step = depth_start;
      if (portion.step != nullptr) {
        step = Smaller(builder_.CreateAdd(depth_start, portion.step),
                       builder_.CreateSub(depth_extent, walk_.Constant(1)));
      }
      at = builder_.CreateGEP(builder_.getFloatTy(), portion.from, Wide(step, staged.depth_stride));
    }
    Value* further = builder_.getInt64(static_cast<std::uint64_t>(portion.further));
    Value* from = builder_.CreateGEP(builder_.getFloatTy(), at, further);
    if (!staged.vectors) {
      walk_.Set(portion.held[0],
                builder_.CreateAlignedLoad(builder_.getFloatTy(), from, llvm::Align(4)));
      continue;
    }
    Value* four = builder_.CreateAlignedLoad(llvm::FixedVectorType::get(builder_.getFloatTy(), 4),
                                             from, llvm::Align(16));
    for (std::size_t i = 0; i < portion.held.size(); ++i) {
      walk_.Set(portion.held[i], builder_.CreateExtractElement(four, i));
    }
  }
}

// Stores a fetched slice to shared memory.
void TileEmitter::Put(const Slice& slice) {
  const StagedOperand& staged = *slice.staged;
  for (const Portion& portion : slice.portions) {
    walk_.If(portion.exists, [&] {
      Value* place = builder_.CreateGEP(builder_.getFloatTy(), shared_, portion.place);
      const auto to = [&](std::int64_t more) {
        return builder_.CreateGEP(
            builder_.getFloatTy(), place,
            builder_.getInt64(static_cast<std::uint64_t>(portion.place_further + more)));
      };
      if (staged.vectors && staged.axis_fastest) {
        Value* four = llvm::PoisonValue::get(llvm::FixedVectorType::get(builder_.getFloatTy(), 4));
        for (std::size_t i = 0; i < portion.held.size(); ++i) {
          four = builder_.CreateInsertElement(four, walk_.Get(portion.held[i]), i);
        }
        builder_.CreateAlignedStore(four, to(0), llvm::Align(16));
        return;
      }
      for (std::size_t i = 0; i < portion.held.size(); ++i) {
        builder_.CreateAlignedStore(walk_.Get(portion.held[i]),
                                    to(static_cast<std::int64_t>(i) * staged.pitch),
                                    llvm::Align(4));
      }
    });
  }
}

void TileEmitter::Step(const Depth* depth) {
  Loaded loaded;
  const Body& body = *tile_.nest.body;
  for (std::int64_t y = 0; y < tile_.y.each; ++y) {
    for (std::int64_t x = 0; x < tile_.x.each; ++x) {
      const auto values = walk_.Evaluate(
          body, [&](const Access& access) { return Operand(access, x, y, depth, loaded); });
      Value* variable = accumulators_[static_cast<std::size_t>(y * tile_.x.each + x)];
      walk_.Set(variable, walk_.Accumulate(body.statements.back(), values, walk_.Get(variable)));
    }
  }
}

Value* TileEmitter::FromShared(const StagedOperand& staged, std::int64_t index, const Depth& depth,
                               Loaded& loaded) {
  const TileAxis& axis = staged.along_x ? tile_.x : tile_.y;
  const Here& here = staged.along_x ? x_ : y_;
  const std::int64_t group = axis.group();
  const std::int64_t first = index / group * group;
  Value*& of_thread = thread_shared_[&staged];
  if (of_thread == nullptr) {
    Value* place = builder_.CreateAdd(builder_.CreateMul(depth.first, walk_.Constant(staged.pitch)),
                                      builder_.CreateMul(here.thread, walk_.Constant(group)));
    of_thread = builder_.CreateGEP(builder_.getFloatTy(), shared_, place);
  }
  const std::int64_t further =
      depth.constant * staged.pitch + staged.offset + LocalConstant(axis, first);
  Value* from = builder_.CreateGEP(builder_.getFloatTy(), of_thread,
                                   builder_.getInt64(static_cast<std::uint64_t>(further)));
  const auto key = [&](std::int64_t at) {
    return std::tuple(staged.access, staged.along_x ? at : -1, staged.along_x ? -1 : at);
  };
  if (group == 1) {
    return loaded[key(index)] =
               builder_.CreateAlignedLoad(builder_.getFloatTy(), from, llvm::Align(4));
  }
  auto* type = llvm::FixedVectorType::get(builder_.getFloatTy(), static_cast<unsigned>(group));
  Value* vector =
      builder_.CreateAlignedLoad(type, from, llvm::Align(static_cast<std::uint64_t>(4 * group)));
  for (std::int64_t i = 0; i < group; ++i) {
    loaded[key(first + i)] = builder_.CreateExtractElement(vector, static_cast<std::uint64_t>(i));
  }
  return loaded[key(index)];
}

Value* TileEmitter::Pointer(const Access& access, const Position& x, const Position& y) const {
  const std::int64_t along_x = StrideAlong(tile_.x, access);
  const std::int64_t along_y = StrideAlong(tile_.y, access);
  Value* pointer = walk_.Pointer(access, x.constant * along_x + y.constant * along_y);
  for (const auto& [position, stride] : {std::pair(&x, along_x), std::pair(&y, along_y)}) {
    if (stride == 0) continue;
    pointer = builder_.CreateGEP(builder_.getFloatTy(), pointer, Wide(position->base, stride));
  }
  return pointer;
}

Value* TileEmitter::Operand(const Access& access, std::int64_t x, std::int64_t y,
                            const Depth* depth, Loaded& loaded) {
  const std::int64_t along_x = StrideAlong(tile_.x, access);
  const std::int64_t along_y = StrideAlong(tile_.y, access);
  const std::int64_t key_x = along_x == 0 ? -1 : x;
  const std::int64_t key_y = along_y == 0 ? -1 : y;
  if (const auto at = loaded.find({&access, key_x, key_y}); at != loaded.end()) return at->second;
  const auto staged = std::ranges::find(tile_.staged, &access, &StagedOperand::access);
  if (depth != nullptr && staged != tile_.staged.end()) {
    return FromShared(*staged, staged->along_x ? x : y, *depth, loaded);
  }
  const bool vector = tile_.x.group() == 4 && along_x == 1 &&
                      MovesByFours(plan_, tile_.nest, access, tile_.x.loop, tile_.x.extent);
  const Position at_y = PositionOf(tile_.y, y_, y, 1);
  if (!vector) {
    Value* from = Pointer(access, PositionOf(tile_.x, x_, x, 1), at_y);
    return loaded[{&access, key_x, key_y}] =
               builder_.CreateAlignedLoad(builder_.getFloatTy(), from, llvm::Align(4));
  }
  const std::int64_t first = x / 4 * 4;
  Value* from = Pointer(access, PositionOf(tile_.x, x_, first, 4), at_y);
  Value* four = builder_.CreateAlignedLoad(llvm::FixedVectorType::get(builder_.getFloatTy(), 4),
                                           from, llvm::Align(16));
  for (std::int64_t i = 0; i < 4; ++i) {
    loaded[{&access, first + i, key_y}] =
        builder_.CreateExtractElement(four, static_cast<std::uint64_t>(i));
  }
  return loaded[{&access, key_x, key_y}];
}

void TileEmitter::StoreAll(const std::function<Value*(std::int64_t x, std::int64_t y)>& value) {
  const Access& target = *tile_.nest.body->statements.back().target;
  const bool vector =
      tile_.x.group() == 4 && MovesByFours(plan_, tile_.nest, target, tile_.x.loop, tile_.x.extent);
  const std::int64_t width = vector ? 4 : 1;
  // All values first: loads are valid for every thread, stores only for elements that exist.
  std::vector<Value*> values;
  for (std::int64_t y = 0; y < tile_.y.each; ++y) {
    for (std::int64_t x = 0; x < tile_.x.each; ++x) values.push_back(value(x, y));
  }
  for (std::int64_t y = 0; y < tile_.y.each; ++y) {
    Value* y_exists = InRange(tile_.y, y_, y);
    for (std::int64_t x = 0; x < tile_.x.each; x += width) {
      Value* exists = walk_.And(y_exists, InRange(tile_.x, x_, x));
      const Position at_x = PositionOf(tile_.x, x_, x, width);
      Value* to = Pointer(target, at_x, PositionOf(tile_.y, y_, y, 1));
      const auto at = [&](std::int64_t i) {
        return values[static_cast<std::size_t>(y * tile_.x.each + x + i)];
      };
      walk_.If(exists, [&] {
        if (!vector) {
          builder_.CreateAlignedStore(at(0), to, llvm::Align(4));
          return;
        }
        Value* four = llvm::PoisonValue::get(llvm::FixedVectorType::get(builder_.getFloatTy(), 4));
        for (std::int64_t i = 0; i < 4; ++i) {
          four = builder_.CreateInsertElement(four, at(i), static_cast<std::uint64_t>(i));
        }
        builder_.CreateAlignedStore(four, to, llvm::Align(16));
      });
    }
  }
}

}  // namespace loopfleet::worker
