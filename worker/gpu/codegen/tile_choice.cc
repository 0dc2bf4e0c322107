#include "worker/gpu/codegen/tile_choice.h"

#include <algorithm>
#include <cstdlib>

namespace loopfleet::worker {
namespace {

using looptree::DimId;

constexpr std::int64_t kMostEach = 8;          // elements per thread along one axis
constexpr std::int64_t kMostAxis = 128;        // elements per block along each of two axes
constexpr std::int64_t kMostLine = 1024;       // elements per block along a single axis
constexpr std::int64_t kMostDepth = 16;        // steps between two barriers
constexpr std::int64_t kLeastReuse = 8;        // fewest uses per element that pay for staging
constexpr std::int64_t kMostOperations = 128;  // for one thread's points, in one step
// Most points of one thread in unrolled steps: eight steps of the largest tile. Keeps the loop
// overhead small.
constexpr std::int64_t kMaxUnrolledWork = 512;
constexpr std::int64_t kMostGrid = (std::int64_t{1} << 31) - 1;  // CUDA's limit on blocks

// A dim that the nest does not reduce over.
struct FreeDim {
  DimId dim = 0;
  LoopId loop = 0;
  std::int64_t extent = 1;
  std::int64_t inside = 1;         // elements covered inside the outermost reduced loop
  std::int64_t target_stride = 0;  // of the result, in elements
};

std::vector<FreeDim> FreeDims(const KernelPlan& plan, const Nest& nest, const Access& target) {
  std::vector<FreeDim> dims;
  bool in_reduction = nest.reduction() == nullptr;
  for (const LoopStep* step : nest.loops) {
    if (nest.Reduces(step->loop)) {
      in_reduction = true;
      continue;
    }
    const PlanLoop& loop = plan.loops[step->loop];
    auto at = std::ranges::find(dims, loop.dim, &FreeDim::dim);
    if (at == dims.end()) {
      dims.push_back({.dim = loop.dim, .loop = 0, .extent = loop.extents.front()});
      at = dims.end() - 1;
    }
    at->loop = step->loop;  // the last one is the innermost
    at->target_stride = StrideOf(target, step->loop);
    // The outermost of the dim's loops inside the reduction has the largest extent.
    if (in_reduction && at->inside == 1) at->inside = loop.extents.front();
  }
  return dims;
}

TileAxis AxisOf(const FreeDim& dim) {
  return {.dim = dim.dim, .loop = dim.loop, .extent = dim.extent, .block = 1};
}

std::int64_t Up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Divides a block's elements among at most kMostBlockThreads threads.
void ShareOut(TileAxis& x, TileAxis& y, std::int64_t most_points) {
  const auto threads = [&] { return Up(x.block, x.each) * Up(y.block, y.each); };
  while (threads() > kMostBlockThreads) {
    const bool full = x.each * y.each * 2 > most_points;
    const bool y_grows = !full && y.each < kMostEach && y.each * 2 <= y.block;
    const bool x_grows = !full && x.each < kMostEach && x.each * 2 <= x.block;
    if (y_grows && (y.each <= x.each || !x_grows)) {
      y.each *= 2;
    } else if (x_grows) {
      x.each *= 2;
    } else if (y.block > 1) {
      y.block = Up(y.block, 2);
    } else {
      x.block = Up(x.block, 2);
    }
  }
  for (TileAxis* axis : {&x, &y}) {
    axis->threads = Up(axis->block, axis->each);
    axis->block = axis->threads * axis->each;
  }
}

// Block size for a nest that reduces: the elements covered inside the outermost reduced loop.
void SizeReducing(TileAxis& x, TileAxis& y, const FreeDim& x_dim, std::int64_t y_inside) {
  y.block = std::min(y_inside, kMostAxis);
  const std::int64_t most = y.block > 1 ? kMostAxis : kMostLine;
  x.block = std::min(x_dim.inside, most);
  // If that is less than a warp's work, the block extends along x.
  if (x.block * y.block < 32) x.block = std::min(x_dim.extent, kMostAxis);
}

// Block size for a nest that does not reduce: chosen for memory access, independent of its loops.
void SizePointwise(TileAxis& x, TileAxis& y, bool has_vector) {
  x.block = std::min(x.extent, kMostLine);
  x.each = has_vector ? 4 : 1;
  y.block = std::clamp<std::int64_t>(kMostBlockThreads / Up(x.block, x.each), 1, y.extent);
}

bool HasVector(const Nest& nest, const KernelPlan& plan, const TileAxis& axis) {
  return std::ranges::any_of(AccessesOf(*nest.body), [&](const Access* access) {
    return MovesByFours(plan, nest, *access, axis.loop, axis.extent);
  });
}

std::int64_t DepthOf(const PlanLoop& loop) {
  const std::int64_t extent = loop.extents.front();
  if (extent <= kMostDepth) return extent;
  for (std::int64_t depth = kMostDepth; depth >= kMostDepth / 2; --depth) {
    if (extent % depth == 0) return depth;
  }
  return kMostDepth;
}

std::int64_t UnrolledSteps(const TileMapping& tile) {
  if (!tile.whole_depth) return 1;
  std::int64_t steps = tile.depth;
  const std::int64_t work = tile.x.each * tile.y.each;
  while (steps > 1 && (tile.depth % steps != 0 || steps * work > kMaxUnrolledWork)) --steps;
  return steps;
}

bool ReadOnlyHere(const Nest& nest, BufferId buffer) {
  return std::ranges::none_of(nest.body->statements, [&](const Statement& statement) {
    return statement.target.has_value() && statement.target->buffer == buffer;
  });
}

void AddStaged(const KernelPlan& plan, TileMapping& tile, const Access& access) {
  const LoopId depth_loop = tile.reduced.back();
  const auto stride_along = [&](const TileAxis& axis) {
    return axis.dim.has_value() ? StrideOf(access, axis.loop) : 0;
  };
  StagedOperand staged{.access = &access};
  const std::int64_t along_x = stride_along(tile.x);
  const std::int64_t along_y = stride_along(tile.y);
  staged.depth_stride = StrideOf(access, depth_loop);
  if ((along_x == 0) == (along_y == 0) || staged.depth_stride == 0) return;
  staged.along_x = along_x != 0;
  staged.axis_stride = staged.along_x ? along_x : along_y;
  const TileAxis& axis = staged.along_x ? tile.x : tile.y;
  const TileAxis& across = staged.along_x ? tile.y : tile.x;
  if (axis.block == 1 || across.block < kLeastReuse || tile.depth < 4) return;
  if (!ReadOnlyHere(tile.nest, access.buffer)) return;
  staged.axis_fastest = std::abs(staged.axis_stride) <= std::abs(staged.depth_stride);
  const std::int64_t depth_extent = plan.loops[depth_loop].extents.front();
  if (staged.axis_fastest) {
    staged.vectors =
        axis.block % 4 == 0 && MovesByFours(plan, tile.nest, access, axis.loop, axis.extent);
  } else {
    // Outer loops over the same dim start at multiples of their step, which must keep alignment.
    const bool even = std::ranges::all_of(tile.nest.loops, [&](const LoopStep* step) {
      return step->loop == depth_loop || StrideOf(access, step->loop) % 4 == 0 ||
             (plan.loops[step->loop].dim == plan.loops[depth_loop].dim &&
              plan.loops[step->loop].step % 4 == 0);
    });
    staged.vectors = tile.whole_depth && tile.depth % 4 == 0 && depth_extent % 4 == 0 && even &&
                     staged.depth_stride == 1 && access.constant % 4 == 0;
  }
  // Four elements of padding avoid bank conflicts when stores run along the depth, and keep rows
  // aligned for loads of four.
  staged.pitch = Up(axis.block, 4) * 4 + (staged.axis_fastest ? 0 : 4);
  staged.offset = tile.shared_elements;
  const std::int64_t elements = staged.pitch * tile.depth;
  if ((tile.shared_elements + elements) * 4 > kSharedBytes) return;
  tile.shared_elements += elements;
  tile.staged.push_back(staged);
}

void ChooseStaged(const KernelPlan& plan, TileMapping& tile) {
  if (tile.reduced.empty()) return;
  const PlanLoop& innermost = plan.loops[tile.reduced.back()];
  if (innermost.step != 1) return;
  tile.depth = DepthOf(innermost);
  tile.whole_depth = std::ranges::all_of(
      innermost.extents, [&](std::int64_t extent) { return extent % tile.depth == 0; });
  tile.unrolled_steps = UnrolledSteps(tile);
  for (const Statement& statement : tile.nest.body->statements) {
    for (const Operand& operand : statement.operands) {
      if (const auto* access = std::get_if<Access>(&operand)) AddStaged(plan, tile, *access);
    }
  }
}

bool OnlyTheLastWrites(const Body& body) {
  const auto others = body.statements.end() - 1;
  return std::none_of(body.statements.begin(), others,
                      [](const Statement& statement) { return statement.target.has_value(); });
}

}  // namespace

std::optional<TileMapping> ChooseTile(const KernelPlan& plan, const Nest& nest) {
  if (!OnlyTheLastWrites(*nest.body) || !MovesEvenly(plan, nest, 0) || HasGuards(*nest.body)) {
    return std::nullopt;
  }
  const Access& target = *nest.body->statements.back().target;
  std::vector<FreeDim> dims = FreeDims(plan, nest, target);
  if (dims.empty()) return std::nullopt;
  TileMapping tile{.nest = nest};
  const auto nearest = std::ranges::min_element(dims, {}, [](const FreeDim& dim) {
    return dim.target_stride == 0 ? INT64_MAX : std::abs(dim.target_stride);
  });
  const FreeDim x_dim = *nearest;
  dims.erase(nearest);
  tile.x = AxisOf(x_dim);
  std::int64_t y_inside = 1;
  if (!dims.empty()) {
    const auto most = std::ranges::max_element(dims, [](const FreeDim& a, const FreeDim& b) {
      return a.inside != b.inside ? a.inside < b.inside : a.extent < b.extent;
    });
    tile.y = AxisOf(*most);
    y_inside = most->inside;
    dims.erase(most);
  }
  for (const FreeDim& dim : dims) tile.others.push_back(AxisOf(dim));
  for (const LoopStep* step : nest.loops) {
    if (nest.Reduces(step->loop)) tile.reduced.push_back(step->loop);
  }
  if (tile.reduced.empty()) {
    SizePointwise(tile.x, tile.y, HasVector(nest, plan, tile.x));
  } else {
    SizeReducing(tile.x, tile.y, x_dim, y_inside);
  }
  const auto statements = static_cast<std::int64_t>(nest.body->statements.size());
  ShareOut(tile.x, tile.y, std::max<std::int64_t>(kMostOperations / statements, 1));
  ChooseStaged(plan, tile);
  tile.blocks = 1;
  for (const TileAxis& axis : tile.others) tile.blocks *= axis.blocks();
  tile.blocks *= tile.x.blocks() * tile.y.blocks();
  if (tile.blocks > kMostGrid) return std::nullopt;
  return tile;
}

}  // namespace loopfleet::worker
