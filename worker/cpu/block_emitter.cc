#include "worker/cpu/block_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <bit>

#include "worker/cpu/source_lines.h"

namespace loopfleet::worker {
namespace {

using llvm::Value;

// Independent dependency chains that keep two units with a latency of four cycles busy.
constexpr std::size_t kChains = 8;

// The most single-lane loads in one iteration: they make the code long.
constexpr std::size_t kSingleLoads = 32;

// Copies of `slots` accumulators, a power of two: enough to keep the units busy, at most half of
// `steps`, and few enough that `single_loads` per slot do not make the code too long.
std::int64_t CopiesFor(std::size_t slots, std::int64_t steps, std::size_t single_loads) {
  auto copies =
      static_cast<std::int64_t>(std::bit_floor(std::max<std::size_t>(1, kChains / slots)));
  const auto loads = static_cast<std::int64_t>(slots * single_loads);
  while (copies > 1 &&
         (steps < 2 * copies || copies * loads > static_cast<std::int64_t>(kSingleLoads))) {
    copies /= 2;
  }
  return copies;
}

// The single-lane loads and calls that a vector of `width` lanes along `loop` needs.
std::size_t SingleLoads(const Body& body, LoopId loop, unsigned width, const VectorShape& shape) {
  if (width == 1) return 0;
  const std::vector<const Access*> accesses = AccessesOf(body);
  const auto scattered = std::ranges::count_if(
      accesses, [&](const Access* access) { return IsScattered(*access, loop, shape); });
  return (static_cast<std::size_t>(scattered) + CallsIn(body, shape)) * width;
}

}  // namespace

void BlockEmitter::Emit(const Nest& nest, const RegisterBlock& block, Start start) {
  Work work{.nest = nest,
            .block = block,
            .reduction = *nest.reduction(),
            .start = start,
            .slots = SlotsOf(nest, block)};
  DecideRest(work);
  LoadInvariants(work);
  StoreResults(work, EmitReduced(work, 0, InitialValues(work)));
}

std::vector<BlockEmitter::Slot> BlockEmitter::SlotsOf(const Nest& nest,
                                                      const RegisterBlock& block) {
  std::vector<Slot> slots(1);
  for (const TileDim& row : block.rows) {
    std::vector<Slot> more;
    for (const Slot& slot : slots) {
      for (std::int64_t i = 0; i < row.extent; ++i) {
        more.push_back(slot);
        more.back().displacement.emplace_back(row.loop, i);
      }
    }
    slots = std::move(more);
  }
  if (!block.columns.has_value()) return slots;
  std::vector<Slot> result;
  const VectorShape shape = ShapeAlong(*nest.body, block.columns->loop, shape_);
  const std::vector<Piece> pieces = PiecesOf(block.columns->extent, shape);
  for (const Slot& slot : slots) {
    for (const Piece& piece : pieces) {
      result.push_back(slot);
      result.back().displacement.emplace_back(block.columns->loop, piece.offset);
      result.back().lanes = {.width = piece.width,
                             .active = piece.active,
                             .loop = block.columns->loop,
                             .mask = bodies_.ConstantMask(piece.width, piece.active)};
    }
  }
  return result;
}

Lanes BlockEmitter::ReducingLanes(const Work& work) const {
  const unsigned width = work.block.reduce_width;
  return {.width = width, .active = width, .loop = work.block.reduced.back(), .mask = nullptr};
}

void BlockEmitter::DecideRest(Work& work) const {
  if (!work.block.lanes_reduce) return;
  const LoopId loop = work.block.reduced.back();
  const bool always_fills = std::ranges::all_of(
      plan_.loops[loop].extents,
      [&](std::int64_t extent) { return extent % work.block.reduce_width == 0; });
  if (always_fills) return;
  // A mask known only at run time cannot suppress lanes that are loaded one by one.
  const bool maskable = std::ranges::all_of(AccessesOf(*work.nest.body), [&](const Access* access) {
    return !IsScattered(*access, loop, shape_);
  });
  work.masked_rest = shape_.masks && maskable && work.block.reduce_width >= 4;
  work.scalar_rest = !work.masked_rest;
}

// Loads the operands that are the same at every point of the block.
void BlockEmitter::LoadInvariants(Work& work) {
  if (work.block.lanes_reduce) return;
  const auto outermost =
      std::ranges::find(work.nest.loops, work.block.reduced.front(), &LoopStep::loop);
  const auto moves = [&](const Access& access) {
    return std::any_of(outermost, work.nest.loops.end(),
                       [&](const LoopStep* step) { return MovesWith(access, step->loop); });
  };
  for (const Statement& statement : work.nest.body->statements) {
    const SourceLines::Scope scope(state_.lines(), builder_, statement);
    for (const Operand& operand : statement.operands) {
      const Access* access = std::get_if<Access>(&operand);
      if (access == nullptr || moves(*access)) continue;
      for (const Slot& slot : work.slots) {
        Value*& loaded = work.invariant.At(*access, {}, slot.lanes);
        if (loaded == nullptr) loaded = bodies_.Load(*access, {}, slot.lanes);
      }
    }
  }
}

BlockEmitter::Values BlockEmitter::InitialValues(const Work& work) {
  const SourceLines::Scope scope(state_.lines(), builder_, work.reduction, ProfilePart::kZero);
  const double identity = ReductionIdentity(work.reduction.op);
  Values values;
  for (const Slot& slot : work.slots) {
    if (work.block.lanes_reduce) {
      values.push_back(bodies_.Splat(identity, work.block.reduce_width));
    } else if (work.start == Start::kIdentity) {
      values.push_back(bodies_.Splat(identity, slot.lanes.width));
    } else {
      values.push_back(bodies_.Load(*work.reduction.target, slot.displacement, slot.lanes));
    }
  }
  if (work.scalar_rest) values.insert(values.end(), work.slots.size(), bodies_.Splat(identity, 1));
  return values;
}

Value* BlockEmitter::RoundedDown(Value* extent, std::int64_t power_of_two) {
  return builder_.CreateAnd(extent, state_.Constant(-power_of_two));
}

BlockEmitter::Values BlockEmitter::EmitReduced(const Work& work, std::size_t level,
                                               const Values& accumulators) {
  const LoopId loop = work.block.reduced[level];
  if (level + 1 < work.block.reduced.size()) {
    return state_.RunWhole(loop, accumulators, [&](Value*, const Values& inside) {
      return EmitReduced(work, level + 1, inside);
    });
  }
  if (work.block.lanes_reduce) return EmitReducedLanes(work, accumulators);
  return EmitInterleaved(work, 1, accumulators);
}

BlockEmitter::Values BlockEmitter::EmitInterleaved(const Work& work, std::int64_t step,
                                                   const Values& accumulators) {
  const LoopId id = work.block.reduced.back();
  const PlanLoop& loop = plan_.loops[id];
  const Lanes lanes = ReducingLanes(work);
  const Lanes* override_lanes = work.block.lanes_reduce ? &lanes : nullptr;
  const std::size_t slots = work.slots.size();
  const std::int64_t copies =
      CopiesFor(slots, loop.extents.front() / step,
                SingleLoads(*work.nest.body, id, work.block.reduce_width, shape_));
  Value* extent = state_.extent(loop.dim);
  Value* interleaved = RoundedDown(extent, copies * step);

  Values all = accumulators;
  for (std::int64_t copy = 1; copy < copies; ++copy) {
    for (Value* value : accumulators) {
      auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
      const unsigned width = vector == nullptr ? 1 : vector->getNumElements();
      all.push_back(bodies_.Splat(ReductionIdentity(work.reduction.op), width));
    }
  }
  const auto run = [&](const Values& carried, Value* start, Value* limit, std::int64_t count) {
    const LoopState::Range range{.loop = id,
                                 .start = start,
                                 .limit = limit,
                                 .step = count * step,
                                 .may_be_empty = true,
                                 .unroll = state_.AsksForUnrolling(id)};
    return state_.Run(range, carried, [&](Value*, const Values& inside) {
      Values next;
      for (std::int64_t copy = 0; copy < count; ++copy) {
        const auto first =
            inside.begin() + static_cast<std::ptrdiff_t>(copy) * static_cast<std::ptrdiff_t>(slots);
        const Values part = EmitTile(work, {{id, copy * step}}, override_lanes,
                                     Values(first, first + static_cast<std::ptrdiff_t>(slots)));
        next.insert(next.end(), part.begin(), part.end());
      }
      return next;
    });
  };
  all = run(all, state_.Constant(0), interleaved, copies);
  for (std::int64_t live = copies; live > 1; live /= 2) {  // pairwise, to keep the chains short
    const SourceLines::Scope scope(state_.lines(), builder_, work.reduction, ProfilePart::kCombine);
    const std::size_t half = static_cast<std::size_t>(live / 2) * slots;
    for (std::size_t i = 0; i < half; ++i) {
      all[i] = bodies_.Combine(work.reduction.op, all[i], all[i + half]);
    }
    all.resize(half);
  }
  if (copies == 1) return all;
  return run(all, interleaved, RoundedDown(extent, step), 1);
}

BlockEmitter::Values BlockEmitter::EmitReducedLanes(const Work& work, const Values& accumulators) {
  const LoopId id = work.block.reduced.back();
  const auto slots = static_cast<std::ptrdiff_t>(work.slots.size());
  Values vectors(accumulators.begin(), accumulators.begin() + slots);
  Values scalars(accumulators.begin() + slots, accumulators.end());
  vectors = EmitInterleaved(work, work.block.reduce_width, vectors);
  Value* extent = state_.extent(plan_.loops[id].dim);
  Value* full = RoundedDown(extent, work.block.reduce_width);
  if (work.masked_rest) vectors = EmitMaskedRest(work, full, std::move(vectors));
  if (work.scalar_rest) {
    const LoopState::Range rest{.loop = id,
                                .start = full,
                                .limit = extent,
                                .step = 1,
                                .may_be_empty = true,
                                .unroll = state_.AsksForUnrolling(id)};
    const Lanes one{};
    scalars = state_.Run(rest, scalars, [&](Value*, const Values& inside) {
      return EmitTile(work, {}, &one, inside);
    });
  }
  vectors.insert(vectors.end(), scalars.begin(), scalars.end());
  return vectors;
}

BlockEmitter::Values BlockEmitter::EmitMaskedRest(const Work& work, Value* start, Values vectors) {
  const LoopId id = work.block.reduced.back();
  Value* extent = state_.extent(plan_.loops[id].dim);
  const LoopState::Range rest{.loop = id,
                              .start = start,
                              .limit = extent,
                              .step = work.block.reduce_width,
                              .may_be_empty = true,
                              .unroll = false};
  return state_.Run(rest, vectors, [&](Value* offset, const Values& inside) {
    Lanes lanes = ReducingLanes(work);
    lanes.mask = bodies_.RuntimeMask(lanes.width, builder_.CreateSub(extent, offset));
    Values next = EmitTile(work, {}, &lanes, inside);
    for (std::size_t i = 0; i < next.size(); ++i) {
      next[i] = builder_.CreateSelect(lanes.mask, next[i], inside[i]);
    }
    return next;
  });
}

BlockEmitter::Values BlockEmitter::EmitTile(const Work& work, const Displacement& along,
                                            const Lanes* lanes, Values accumulators) {
  LoadCache cache = work.invariant;
  for (std::size_t i = 0; i < work.slots.size(); ++i) {
    const Slot& slot = work.slots[i];
    Displacement displacement = slot.displacement;
    displacement.insert(displacement.end(), along.begin(), along.end());
    bodies_.Emit(*work.nest.body, displacement, lanes == nullptr ? slot.lanes : *lanes, cache,
                 &accumulators[i]);
  }
  return accumulators;
}

void BlockEmitter::StoreResults(const Work& work, const Values& accumulators) {
  const SourceLines::Scope scope(state_.lines(), builder_, work.reduction, ProfilePart::kCombine);
  const looptree::Op op = work.reduction.op;
  for (std::size_t i = 0; i < work.slots.size(); ++i) {
    const Slot& slot = work.slots[i];
    Value* result = accumulators[i];
    if (work.block.lanes_reduce) {
      result = bodies_.CombineLanes(op, result);
      if (work.scalar_rest) {
        result = bodies_.Combine(op, result, accumulators[work.slots.size() + i]);
      }
      if (work.start == Start::kMemory) {
        Value* before = bodies_.Load(*work.reduction.target, slot.displacement, slot.lanes);
        result = bodies_.Combine(op, before, result);
      }
    }
    bodies_.Store(result, *work.reduction.target, slot.displacement, slot.lanes);
  }
}

}  // namespace loopfleet::worker
