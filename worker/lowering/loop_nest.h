#pragma once
// Nest: a chain of loops, each containing nothing but the next, down to one body. RegisterBlock:
// how a nest runs with the accumulators of its reduction in registers. The rules are those of
// docs/LOWERING.md, "Register blocks"; they depend only on the plan and the vector shape.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace loopfleet::worker {

struct Nest {
  std::vector<const LoopStep*> loops;  // outermost first
  const Body* body = nullptr;

  // The reduction, always the last statement; null: none.
  const Statement* reduction() const;
  bool Reduces(LoopId loop) const;
  // The innermost loop of the nest over `dim`.
  LoopId InnermostOver(const KernelPlan& plan, looptree::DimId dim) const;
};

// The nest that starts at `step`; nullopt if a loop contains anything beside the next one, or the
// body does not run in every iteration.
std::optional<Nest> NestAt(const LoopStep& step);

// How far `access`, quotients aside, moves when `loop` moves by one element.
std::int64_t StrideOf(const Access& access, LoopId loop);
std::int64_t StrideOf(const PlanIndex& index, LoopId loop);

// Whether any index of the access, guards included, moves with the loop.
bool MovesWith(const Access& access, LoopId loop);

// Whether the lanes of a vector along `loop` have to be loaded one by one: they are neither side by
// side nor all the same, or a guard needs a mask that the instruction set lacks.
bool IsScattered(const Access& access, LoopId loop, const VectorShape& shape);

// The memory accesses of a body, in order.
std::vector<const Access*> AccessesOf(const Body& body);
// The indices of its quotients and guards, those of guarded literals included, in order.
std::vector<const PlanIndex*> IndicesOf(const Body& body);
// Whether any operand has a guard or a quotient.
bool HasGuards(const Body& body);

// A part of a vectorised range: `active` elements from `offset`, in a register of `width` lanes.
// active < width needs a mask.
struct Piece {
  std::int64_t offset = 0;
  unsigned width = 1;
  unsigned active = 1;
  friend bool operator==(const Piece&, const Piece&) = default;
};
// Covers [0, extent) with whole registers, then the rest under a mask or in ever smaller registers.
std::vector<Piece> PiecesOf(std::int64_t extent, const VectorShape& shape);

// The multiplication whose product is used only by the sum that ends the body: the two become one
// fused operation. nullopt: the body has none.
std::optional<std::uint32_t> FusedProduct(const Body& body);

// The number of operations in the body that are functions (exp, log ...), which take many
// instructions.
std::size_t FunctionsIn(const Body& body);
// How many of them are calls of the C library, for one element at a time: all or, where
// multiplications and additions are fused, sin and cos alone, which are hard for large numbers
// (worker/cpu/float_math.h).
std::size_t CallsIn(const Body& body, const VectorShape& shape);

// The vector shape along `loop`. Where elements that are not contiguous are loaded one by one, or
// the C library is called for each, vectors have four lanes, as longer ones would take more
// instructions without being faster.
VectorShape ShapeAlong(const Body& body, LoopId loop, const VectorShape& shape);

std::size_t PieceCount(std::int64_t extent, const VectorShape& shape);

// A dim that the body does not reduce over, and how much of it the block covers.
struct TileDim {
  looptree::DimId dim = 0;
  LoopId loop = 0;  // the innermost one over the dim
  std::int64_t extent = 1;
  friend bool operator==(const TileDim&, const TileDim&) = default;
};

struct RegisterBlock {
  std::vector<LoopId> reduced;  // the block's loops that reduce, outermost first: these stay loops
  std::vector<TileDim> rows;    // unrolled
  // The vectorised dim of the tile. nullopt: the innermost reduced loop is vectorised
  // (lanes_reduce), or nothing is.
  std::optional<TileDim> columns;
  bool lanes_reduce = false;  // each lane of the innermost reduced loop has its own partial result
  unsigned reduce_width = 1;  // the number of those lanes
  bool chosen_by_annotation = false;  // a "vectorize" changed the choice
};

// The block whose outermost loop is `nest.loops[outermost]`, with the given extents of the dims
// inside. nullopt if that loop does not reduce, if an access does not move evenly, or if the
// accumulators would not fit the registers.
std::optional<RegisterBlock> BlockAt(const KernelPlan& plan, const Nest& nest,
                                     std::size_t outermost, const std::vector<TileDim>& tile,
                                     const VectorShape& shape);

// The dims inside `nest.loops[outermost]` that the body does not reduce over, with the largest
// extent that each can have, in the order of their outermost loops.
std::vector<TileDim> TileInside(const KernelPlan& plan, const Nest& nest, std::size_t outermost);

// The rows of a tile whose columns are `columns`: the product of its other dims.
std::size_t RowCount(const std::vector<TileDim>& tile, std::optional<looptree::DimId> columns);

// The most rows with partial results in lanes, as each of them ends with a long combination.
inline constexpr std::size_t kReducingRows = 8;

// The number of vectors that each of `rows` rows can keep in registers; 0: none.
std::size_t VectorsBeside(std::size_t rows, const VectorShape& shape);

// Whether each access in the block has one stride along all loops of a dim, as a block requires.
bool MovesEvenly(const KernelPlan& plan, const Nest& nest, std::size_t outermost);

// The approximate number of instructions for one point, with `extent` elements of `loop` in
// vectors.
double VectorCost(const Nest& nest, LoopId loop, std::int64_t extent, const VectorShape& shape);

// The outermost loop that can hold a block; nullopt: none can.
std::optional<std::size_t> BlockLoopOf(const KernelPlan& plan, const Nest& nest,
                                       const VectorShape& shape);

}  // namespace loopfleet::worker
