#include "worker/lowering/loop_nest.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::DimId;
using looptree::Op;

// Registers beside the accumulators, for the operands of the current operation.
constexpr std::size_t kWorkingRegisters = 2;
constexpr unsigned kScatteredLanes = 4;

std::size_t CountOf(const Body& body, std::initializer_list<Op> ops) {
  return static_cast<std::size_t>(std::ranges::count_if(body.statements, [&](const Statement& s) {
    return std::ranges::find(ops, s.op) != ops.end();
  }));
}

bool IsOuterReduced(const Nest& nest, std::size_t outermost) {
  return nest.Reduces(nest.loops[outermost]->loop);
}

// The approximate number of instructions for one point, if `loop` is vectorised with `lanes` of its
// elements at a time.
double CostPerPoint(const Nest& nest, LoopId loop, double lanes, const VectorShape& shape) {
  double cost = 0;
  for (const Statement& statement : nest.body->statements) {
    cost += 1 / lanes;
    for (const Operand& operand : statement.operands) {
      const Access* access = std::get_if<Access>(&operand);
      if (access == nullptr) continue;
      cost += IsScattered(*access, loop, shape) ? 1.0 : 1 / lanes;
    }
    if (statement.target.has_value() && statement.reduced.empty()) {
      cost += StrideOf(*statement.target, loop) == 1 ? 1 / lanes : 1.0;
    }
  }
  return cost;
}

struct Candidate {
  RegisterBlock block;
  double cost = 0;
  std::size_t depth = 0;  // of the vectorised loop
  bool annotated = false;
};

bool IsAnnotatedVectorize(const KernelPlan& plan, const Nest& nest, std::size_t outermost,
                          DimId dim) {
  for (std::size_t i = outermost; i < nest.loops.size(); ++i) {
    const PlanLoop& loop = plan.loops[nest.loops[i]->loop];
    if (loop.dim == dim && loop.annotation == Annotation::kVectorize) return true;
  }
  return false;
}

std::size_t DepthOf(const Nest& nest, LoopId loop) {
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (nest.loops[i]->loop == loop) return i;
  }
  LF_CHECK(false, "loop {} is not in the nest", loop);
  return 0;
}

std::optional<Candidate> CandidateFor(const KernelPlan& plan, const Nest& nest,
                                      std::size_t outermost, const std::vector<TileDim>& tile,
                                      const TileDim& columns, const VectorShape& shape) {
  if (columns.extent < 2 ||
      PieceCount(columns.extent, ShapeAlong(*nest.body, columns.loop, shape)) >
          VectorsBeside(RowCount(tile, columns.dim), shape)) {
    return std::nullopt;
  }
  Candidate candidate;
  candidate.block.columns = columns;
  for (const TileDim& dim : tile) {
    if (dim.dim != columns.dim) candidate.block.rows.push_back(dim);
  }
  candidate.cost = VectorCost(nest, columns.loop, columns.extent, shape);
  candidate.depth = DepthOf(nest, columns.loop);
  candidate.annotated = IsAnnotatedVectorize(plan, nest, outermost, columns.dim);
  return candidate;
}

std::optional<Candidate> ReducedCandidate(const KernelPlan& plan, const Nest& nest,
                                          std::size_t outermost, const std::vector<TileDim>& tile,
                                          LoopId loop, const VectorShape& shape) {
  const std::int64_t extent = plan.loops[loop].extents.front();
  if (plan.loops[loop].step != 1 || RowCount(tile, std::nullopt) > kReducingRows) {
    return std::nullopt;
  }
  Candidate candidate;
  candidate.block.rows = tile;
  const std::int64_t lanes =
      std::min<std::int64_t>(extent, ShapeAlong(*nest.body, loop, shape).lanes);
  candidate.block.reduce_width = std::bit_floor(static_cast<unsigned>(lanes));
  candidate.block.lanes_reduce = candidate.block.reduce_width > 1;
  candidate.cost = CostPerPoint(nest, loop, candidate.block.reduce_width, shape);
  candidate.depth = DepthOf(nest, loop);
  candidate.annotated = candidate.block.lanes_reduce &&
                        IsAnnotatedVectorize(plan, nest, outermost, plan.loops[loop].dim);
  return candidate;
}

// Cheapest first; of equals, the innermost.
bool IsBetter(const Candidate& a, const Candidate& b) {
  return a.cost != b.cost ? a.cost < b.cost : a.depth > b.depth;
}

}  // namespace

const Statement* Nest::reduction() const {
  const Statement& last = body->statements.back();
  return last.reduced.empty() ? nullptr : &last;
}

bool Nest::Reduces(LoopId loop) const {
  const Statement* statement = reduction();
  return statement != nullptr &&
         std::ranges::find(statement->reduced, loop) != statement->reduced.end();
}

LoopId Nest::InnermostOver(const KernelPlan& plan, DimId dim) const {
  for (std::size_t i = loops.size(); i-- > 0;) {
    if (plan.loops[loops[i]->loop].dim == dim) return loops[i]->loop;
  }
  LF_CHECK(false, "dim {} has no loop in the nest", dim);
  return 0;
}

std::optional<Nest> NestAt(const LoopStep& step) {
  Nest nest;
  const LoopStep* loop = &step;
  while (true) {
    nest.loops.push_back(loop);
    if (loop->steps.size() != 1) return std::nullopt;
    const Step& only = loop->steps.front();
    if (const Body* body = std::get_if<Body>(&only.what)) {
      if (!body->once.empty()) return std::nullopt;
      nest.body = body;
      return nest;
    }
    loop = &std::get<LoopStep>(only.what);
  }
}

namespace {

std::int64_t StrideIn(const std::vector<AccessTerm>& terms, LoopId loop) {
  const auto at = std::ranges::find(terms, loop, &AccessTerm::loop);
  return at == terms.end() ? 0 : at->stride;
}

bool QuotientsMoveWith(const Access& access, LoopId loop) {
  return std::ranges::any_of(access.quotients, [&](const AccessQuotient& quotient) {
    return StrideOf(quotient.index, loop) != 0;
  });
}

bool GuardsMoveWith(const std::vector<AccessGuard>& guards, LoopId loop) {
  return std::ranges::any_of(
      guards, [&](const AccessGuard& guard) { return StrideOf(guard.index, loop) != 0; });
}

}  // namespace

std::int64_t StrideOf(const Access& access, LoopId loop) { return StrideIn(access.terms, loop); }
std::int64_t StrideOf(const PlanIndex& index, LoopId loop) { return StrideIn(index.terms, loop); }

bool MovesWith(const Access& access, LoopId loop) {
  return StrideOf(access, loop) != 0 || QuotientsMoveWith(access, loop) ||
         GuardsMoveWith(access.guards, loop);
}

bool IsScattered(const Access& access, LoopId loop, const VectorShape& shape) {
  const std::int64_t stride = StrideOf(access, loop);
  if ((stride != 0 && stride != 1) || QuotientsMoveWith(access, loop)) return true;
  return GuardsMoveWith(access.guards, loop) && (stride == 0 || !shape.masks);
}

std::vector<const Access*> AccessesOf(const Body& body) {
  std::vector<const Access*> accesses;
  for (const Statement& statement : body.statements) {
    for (const Operand& operand : statement.operands) {
      if (const Access* access = std::get_if<Access>(&operand)) accesses.push_back(access);
    }
    if (statement.target.has_value()) accesses.push_back(&*statement.target);
  }
  return accesses;
}

std::vector<const PlanIndex*> IndicesOf(const Body& body) {
  std::vector<const PlanIndex*> indices;
  const auto add_guards = [&](const std::vector<AccessGuard>& guards) {
    for (const AccessGuard& guard : guards) indices.push_back(&guard.index);
  };
  for (const Statement& statement : body.statements) {
    for (const Operand& operand : statement.operands) {
      if (const auto* literal = std::get_if<Literal>(&operand)) add_guards(literal->guards);
      if (const auto* value = std::get_if<ValueOf>(&operand)) add_guards(value->guards);
      const auto* access = std::get_if<Access>(&operand);
      if (access == nullptr) continue;
      for (const AccessQuotient& quotient : access->quotients) indices.push_back(&quotient.index);
      add_guards(access->guards);
    }
  }
  return indices;
}

bool HasGuards(const Body& body) { return !IndicesOf(body).empty(); }

std::vector<Piece> PiecesOf(std::int64_t extent, const VectorShape& shape) {
  std::vector<Piece> pieces;
  std::int64_t offset = 0;
  for (; extent - offset >= shape.lanes; offset += shape.lanes) {
    pieces.push_back({offset, shape.lanes, shape.lanes});
  }
  while (offset < extent) {
    const auto left = static_cast<unsigned>(extent - offset);
    // Registers of fewer than four lanes have no masks; a single element needs none.
    const bool masked = shape.masks && left > 1;
    const unsigned width = masked ? std::max(4U, std::bit_ceil(left)) : std::bit_floor(left);
    const unsigned active = std::min(left, width);
    pieces.push_back({offset, width, active});
    offset += active;
  }
  return pieces;
}

std::optional<std::uint32_t> FusedProduct(const Body& body) {
  const Statement& last = body.statements.back();
  if (last.reduced.empty() || last.op != looptree::Op::kAdd || last.operands.size() != 1)
    return std::nullopt;
  const ValueOf* value = std::get_if<ValueOf>(&last.operands[0]);
  if (value == nullptr || !value->guards.empty()) return std::nullopt;
  const Statement& product = body.statements[value->statement];
  if (product.op != looptree::Op::kMultiply || product.operands.size() != 2 ||
      product.target.has_value()) {
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

std::size_t FunctionsIn(const Body& body) {
  return CountOf(body, {Op::kExp, Op::kLog, Op::kTanh, Op::kErf, Op::kPower, Op::kSin, Op::kCos});
}

std::size_t CallsIn(const Body& body, const VectorShape& shape) {
  return shape.fuses ? CountOf(body, {Op::kSin, Op::kCos}) : FunctionsIn(body);
}

VectorShape ShapeAlong(const Body& body, LoopId loop, const VectorShape& shape) {
  const auto is_scattered = [&](const Access& access) { return IsScattered(access, loop, shape); };
  const bool scattered = std::ranges::any_of(body.statements, [&](const Statement& statement) {
    const bool loads = std::ranges::any_of(statement.operands, [&](const Operand& operand) {
      const Access* access = std::get_if<Access>(&operand);
      return access != nullptr && is_scattered(*access);
    });
    // The target of a reduction is accessed only once, at its end.
    return loads || (statement.reduced.empty() && statement.target.has_value() &&
                     is_scattered(*statement.target));
  });
  VectorShape along = shape;
  if (scattered || CallsIn(body, shape) > 0) along.lanes = std::min(shape.lanes, kScatteredLanes);
  return along;
}

std::size_t PieceCount(std::int64_t extent, const VectorShape& shape) {
  const std::int64_t whole = extent / shape.lanes;
  return static_cast<std::size_t>(whole) + PiecesOf(extent % shape.lanes, shape).size();
}

std::size_t RowCount(const std::vector<TileDim>& tile, std::optional<DimId> columns) {
  std::size_t rows = 1;
  for (const TileDim& dim : tile) {
    if (dim.dim == columns) continue;
    // Far more than any register file: stop before the product overflows.
    if (dim.extent > 1024 || rows > 1024) return std::numeric_limits<std::uint32_t>::max();
    rows *= static_cast<std::size_t>(dim.extent);
  }
  return rows;
}

// One row needs registers for its operands. Several rows share one register for each vector of the
// columns, and one more for the other operand.
std::size_t VectorsBeside(std::size_t rows, const VectorShape& shape) {
  if (rows == 1) return shape.registers - kWorkingRegisters;
  return (shape.registers - 1) / (rows + 1);
}

bool MovesEvenly(const KernelPlan& plan, const Nest& nest, std::size_t outermost) {
  for (const Access* access : AccessesOf(*nest.body)) {
    for (std::size_t i = outermost; i < nest.loops.size(); ++i) {
      const LoopId loop = nest.loops[i]->loop;
      const LoopId innermost = nest.InnermostOver(plan, plan.loops[loop].dim);
      if (StrideOf(*access, loop) != StrideOf(*access, innermost)) return false;
    }
  }
  return true;
}

double VectorCost(const Nest& nest, LoopId loop, std::int64_t extent, const VectorShape& shape) {
  const VectorShape along = ShapeAlong(*nest.body, loop, shape);
  const auto pieces = static_cast<double>(PieceCount(extent, along));
  return CostPerPoint(nest, loop, static_cast<double>(extent) / pieces, shape);
}

std::vector<TileDim> TileInside(const KernelPlan& plan, const Nest& nest, std::size_t outermost) {
  std::vector<TileDim> tile;
  for (std::size_t i = outermost + 1; i < nest.loops.size(); ++i) {
    const LoopId id = nest.loops[i]->loop;
    const PlanLoop& loop = plan.loops[id];
    if (nest.Reduces(id) || std::ranges::find(tile, loop.dim, &TileDim::dim) != tile.end()) {
      continue;
    }
    tile.push_back({loop.dim, nest.InnermostOver(plan, loop.dim), loop.extents.front()});
  }
  return tile;
}

std::optional<RegisterBlock> BlockAt(const KernelPlan& plan, const Nest& nest,
                                     std::size_t outermost, const std::vector<TileDim>& tile,
                                     const VectorShape& shape) {
  if (!IsOuterReduced(nest, outermost) || !MovesEvenly(plan, nest, outermost)) {
    return std::nullopt;
  }
  std::vector<LoopId> reduced;
  for (std::size_t i = outermost; i < nest.loops.size(); ++i) {
    if (nest.Reduces(nest.loops[i]->loop)) reduced.push_back(nest.loops[i]->loop);
  }
  std::vector<Candidate> candidates;
  for (const TileDim& columns : tile) {
    if (auto candidate = CandidateFor(plan, nest, outermost, tile, columns, shape)) {
      candidates.push_back(*std::move(candidate));
    }
  }
  if (auto candidate = ReducedCandidate(plan, nest, outermost, tile, reduced.back(), shape)) {
    candidates.push_back(*std::move(candidate));
  }
  if (candidates.empty()) return std::nullopt;
  const auto best = std::ranges::min_element(candidates, IsBetter);
  const auto annotated = std::ranges::find(candidates, true, &Candidate::annotated);
  const bool overridden = annotated != candidates.end() && !best->annotated;
  RegisterBlock block = overridden ? annotated->block : best->block;
  block.reduced = std::move(reduced);
  block.chosen_by_annotation = overridden;
  return block;
}

std::optional<std::size_t> BlockLoopOf(const KernelPlan& plan, const Nest& nest,
                                       const VectorShape& shape) {
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (!nest.Reduces(nest.loops[i]->loop)) continue;
    if (BlockAt(plan, nest, i, TileInside(plan, nest, i), shape).has_value()) return i;
  }
  return std::nullopt;
}

}  // namespace loopfleet::worker
