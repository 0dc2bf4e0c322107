#include "worker/cpu/vector_loop_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>

#include "kernel/kernel.h"

namespace loopfleet::worker {
namespace {

using llvm::Value;
using looptree::Annotation;
using looptree::DimId;
using Values = LoopState::Values;

// Vectors per iteration of a vectorised loop, and the most that are unrolled without a loop.
constexpr std::int64_t kVectorsPerIteration = 4;
constexpr std::int64_t kStraightLineVectors = 8;
// An output of at least the last-level cache's size divided by this may bypass the cache.
constexpr std::int64_t kStreamedShare = 4;
constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

}  // namespace

bool VectorLoopEmitter::HasUnevenLanes(const Nest& nest, LoopId loop) const {
  return std::ranges::any_of(AccessesOf(*nest.body), [&](const Access* access) {
    return IsScattered(*access, loop, shape_);
  });
}

// The innermost loop of a nest is vectorised if it writes contiguous elements.
bool VectorLoopEmitter::Vectorises(const Nest& nest, LoopId id) {
  const PlanLoop& loop = plan_.loops[id];
  if (loop.extents.front() < 2) return false;
  const bool side_by_side = std::ranges::all_of(nest.body->statements, [&](const Statement& s) {
    return !s.target.has_value() || StrideOf(*s.target, id) == 0 || StrideOf(*s.target, id) == 1;
  });
  if (side_by_side) return true;
  if (loop.annotation != Annotation::kVectorize) return false;
  effective_.insert(*loop.ref);
  return true;
}

// Whether all that the vectors of `loop` write bypasses the caches: see docs/LOWERING.md.
bool VectorLoopEmitter::Streams(const Nest& nest, LoopId loop) const {
  // A thread's part may begin inside a vector, and the fence at the end covers one thread only.
  if (plan_.threads > 1) return false;
  std::int64_t all_bytes = 0;
  for (const PlanBuffer& buffer : plan_.buffers) all_bytes += buffer.element_count * kFloatBytes;
  if (all_bytes <= shape_.cache_bytes) return false;
  if (plan_.loops[loop].extents.front() < kVectorsPerIteration * shape_.lanes) return false;
  const auto lanes = static_cast<std::int64_t>(shape_.lanes);
  const auto streams = [&](const Access& target) {
    const PlanBuffer& buffer = plan_.buffers[target.buffer];
    if (buffer.role != BufferSpec::Role::kOutput || StrideOf(target, loop) != 1 ||
        kStreamedShare * buffer.element_count * kFloatBytes < shape_.cache_bytes) {
      return false;
    }
    return target.constant % lanes == 0 &&
           std::ranges::all_of(target.terms, [&](const AccessTerm& term) {
             return term.loop == loop || term.stride * plan_.loops[term.loop].step % lanes == 0;
           });
  };
  return std::ranges::all_of(nest.body->statements, [&](const Statement& statement) {
    return statement.reduced.empty() &&
           (!statement.target.has_value() || streams(*statement.target));
  });
}

// Emits the innermost loop of a nest outside a register block: as vectors if possible, as scalars
// if the loop reduces.
void VectorLoopEmitter::Emit(const Nest& nest) {
  const LoopId id = nest.loops.back()->loop;
  const DimId dim = plan_.loops[id].dim;
  Value* extent = state_.extent(dim);
  if (nest.Reduces(id) || !Vectorises(nest, id)) {
    EmitScalars(nest, id, state_.Constant(0), extent);
    return;
  }
  const std::int64_t known = state_.ConstantExtent(dim);
  const std::int64_t straight = FunctionsIn(*nest.body) == 0 ? kStraightLineVectors : 1;
  const std::int64_t lanes = ShapeAlong(*nest.body, id, shape_).lanes;
  if (known > 0 && known / lanes <= straight) {
    EmitPieces(nest, id, known, 0);
  } else if (known > 0 && state_.AsksForUnrolling(id)) {
    const std::int64_t whole = known / lanes * lanes;
    const LoopState::Range vectors{.loop = id,
                                   .start = state_.Constant(0),
                                   .limit = state_.Constant(whole),
                                   .step = lanes,
                                   .may_be_empty = false,
                                   .unroll = true};
    const auto width = static_cast<unsigned>(lanes);
    state_.Run(vectors, {}, [&](Value*, const Values&) {
      EmitLanes(nest, 0, {.width = width, .active = width, .loop = id, .mask = nullptr});
      return Values{};
    });
    EmitPieces(nest, id, known, whole);
  } else {
    EmitVectors(nest, id, extent);
  }
}

void VectorLoopEmitter::EmitLanes(const Nest& nest, std::int64_t offset, const Lanes& lanes) {
  LoadCache cache;
  const LoopId loop = nest.loops.back()->loop;
  Lanes used = lanes;
  used.streams = lanes.width == shape_.lanes && lanes.mask == nullptr && Streams(nest, loop);
  streamed_ = streamed_ || used.streams;
  bodies_.Emit(*nest.body, {{loop, offset}}, used, cache);
}

void VectorLoopEmitter::EmitPieces(const Nest& nest, LoopId loop, std::int64_t extent,
                                   std::int64_t start) {
  for (const Piece& piece : PiecesOf(extent, ShapeAlong(*nest.body, loop, shape_))) {
    if (piece.offset < start) continue;
    EmitLanes(nest, piece.offset,
              {.width = piece.width,
               .active = piece.active,
               .loop = loop,
               .mask = bodies_.ConstantMask(piece.width, piece.active)});
  }
}

void VectorLoopEmitter::EmitVectors(const Nest& nest, LoopId loop, Value* extent) {
  const unsigned lanes = ShapeAlong(*nest.body, loop, shape_).lanes;
  const auto width = static_cast<std::int64_t>(lanes);
  const std::int64_t longest = plan_.loops[loop].extents.front();
  const auto rounded = [&](std::int64_t multiple) {
    return builder_.CreateAnd(extent, state_.Constant(-multiple));
  };
  const auto run = [&](Value* start, Value* limit, std::int64_t vectors) {
    const LoopState::Range range{.loop = loop,
                                 .start = start,
                                 .limit = limit,
                                 .step = vectors * width,
                                 .may_be_empty = true,
                                 .unroll = false};
    state_.Run(range, {}, [&](Value*, const Values&) {
      for (std::int64_t i = 0; i < vectors; ++i) {
        EmitLanes(nest, i * width,
                  {.width = lanes, .active = lanes, .loop = loop, .mask = nullptr});
      }
      return Values{};
    });
  };
  Value* start = state_.Constant(0);
  // Functions make the code long and gain nothing from unrolling.
  if (longest >= kVectorsPerIteration * width && FunctionsIn(*nest.body) == 0) {
    Value* limit = rounded(kVectorsPerIteration * width);
    run(start, limit, kVectorsPerIteration);
    start = limit;
  }
  Value* limit = rounded(width);
  run(start, limit, 1);
  if (!shape_.masks || HasUnevenLanes(nest, loop)) {
    EmitScalars(nest, loop, limit, extent);
    return;
  }
  const LoopState::Range rest{.loop = loop,
                              .start = limit,
                              .limit = extent,
                              .step = width,
                              .may_be_empty = true,
                              .unroll = false};
  state_.Run(rest, {}, [&](Value* offset, const Values&) {
    Value* mask = bodies_.RuntimeMask(lanes, builder_.CreateSub(extent, offset));
    EmitLanes(nest, 0, {.width = lanes, .active = lanes, .loop = loop, .mask = mask});
    return Values{};
  });
}

void VectorLoopEmitter::EmitScalars(const Nest& nest, LoopId loop, Value* start, Value* limit) {
  const LoopState::Range range{.loop = loop,
                               .start = start,
                               .limit = limit,
                               .step = 1,
                               .may_be_empty = true,
                               .unroll = state_.AsksForUnrolling(loop)};
  state_.Run(range, {}, [&](Value*, const Values&) {
    EmitLanes(nest, 0, Lanes{});
    return Values{};
  });
}

}  // namespace loopfleet::worker
