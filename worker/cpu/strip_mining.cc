#include "worker/cpu/strip_mining.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "worker/lowering/leaf_loops.h"
#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::DimId;
using looptree::kNoParent;
using looptree::LoopSpec;
using looptree::LoopTree;
using looptree::NodeId;
using looptree::NodeSchedule;
using looptree::Schedule;
using looptree::TreeNode;
using looptree::TreeRef;

// Vectors in a strip whose accumulators stay in registers: enough to keep the units busy.
constexpr std::int64_t kBlockVectors = 8;
// Fewest vectors per row. Below this, the block takes fewer rows instead.
constexpr std::size_t kLeastVectors = 2;
// Vectors in a strip that goes through memory.
constexpr std::int64_t kMemoryVectors = 4;

// The change to the loops of a nest, or to all nests under one loop.
struct Cut {
  // The loop cut into strips of `width` elements, which run innermost. The loop over the strips
  // takes the place of `loop`, or goes right outside `reduced` if `loop` was inside that.
  std::optional<TreeRef> loop;
  std::int64_t width = 1;
  // The reduced loop that starts the register block, and the inner loops moved outside it.
  std::optional<TreeRef> reduced;
  std::set<TreeRef> hoisted;
  bool annotated = false;  // the annotation "vectorize" changed the choice

  // The outermost loop whose operations change.
  TreeRef top() const { return std::min(loop.value_or(kNoParent), reduced.value_or(kNoParent)); }
};

std::int64_t CeilOf(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The width of equal strips, rounded up to whole vectors, of at most `vectors` each.
std::int64_t StripWidth(std::int64_t extent, std::int64_t vectors, const VectorShape& shape) {
  const std::int64_t all = CeilOf(extent, shape.lanes);
  const std::int64_t strips = CeilOf(all, vectors);
  return std::min(extent, CeilOf(all, strips) * static_cast<std::int64_t>(shape.lanes));
}

class Chooser {
 public:
  Chooser(const LoopTree& tree, const KernelPlan& plan, const VectorShape& shape)
      : tree_(tree), plan_(plan), shape_(shape) {}

  std::vector<Cut> Choose() {
    Visit(plan_.steps);
    return std::move(cuts_);
  }

 private:
  struct Columns {
    std::size_t depth = 0;  // of the loop, in path_
    double cost = 0;
    bool annotated = false;
  };
  // What the lanes of a vector hold: elements of the target, or partial results of one element.
  enum class Lanes { kSpread, kReduce };

  void Visit(const std::vector<Step>& steps);
  void Decide(const Body& body);
  Body Widened(const Body& body) const;
  void DecideReduction(const Nest& nest, const Columns& columns);
  std::int64_t ExtentOf(const Nest& nest, LoopId id) const;
  std::size_t FirstOfNest() const;
  std::vector<Columns> CandidatesOf(const Nest& nest) const;
  std::optional<Columns> Best(const Nest& nest) const;
  const PlanLoop& LoopAt(std::size_t depth) const { return plan_.loops[path_[depth]->loop]; }
  bool IsCut(std::size_t depth) const {
    return std::ranges::any_of(cuts_,
                               [&](const Cut& cut) { return cut.top() == *LoopAt(depth).ref; });
  }
  void Sink(std::size_t reduced, const Columns& columns, Lanes lanes);
  Cut CutAt(const Columns& columns, std::int64_t vectors) const;
  void Add(Cut cut);

  const LoopTree& tree_;
  const KernelPlan& plan_;
  const VectorShape& shape_;
  std::vector<const LoopStep*> path_;  // the loops enclosing the step being visited
  std::vector<Cut> cuts_;
};

void Chooser::Visit(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (const Body* body = std::get_if<Body>(&step.what)) {
      Decide(*body);
      continue;
    }
    const LoopStep& loop = std::get<LoopStep>(step.what);
    path_.push_back(&loop);
    Visit(loop.steps);
    path_.pop_back();
  }
}

// The loops that could be vectorised: those that step by one element.
std::vector<Chooser::Columns> Chooser::CandidatesOf(const Nest& nest) const {
  std::vector<Columns> candidates;
  for (std::size_t depth = 0; depth < path_.size(); ++depth) {
    const LoopId id = path_[depth]->loop;
    const PlanLoop& loop = plan_.loops[id];
    if (loop.parallel || loop.step != 1 || loop.extents.front() < 2) continue;
    const bool reduces = nest.Reduces(id);
    if (reduces && depth + 1 < path_.size() &&
        std::any_of(path_.begin() + static_cast<std::ptrdiff_t>(depth) + 1, path_.end(),
                    [&](const LoopStep* step) { return nest.Reduces(step->loop); })) {
      continue;  // only the innermost reduced loop can supply lanes that reduce
    }
    // A body without accumulators stores in every iteration, so its stores must be contiguous.
    const bool side_by_side = std::ranges::all_of(nest.body->statements, [&](const Statement& s) {
      return !s.target.has_value() || !s.reduced.empty() || StrideOf(*s.target, id) == 0 ||
             StrideOf(*s.target, id) == 1;
    });
    if (!side_by_side) continue;
    candidates.push_back({.depth = depth,
                          .cost = VectorCost(nest, id, ExtentOf(nest, id), shape_),
                          .annotated = loop.annotation == Annotation::kVectorize});
  }
  return candidates;
}

// The extent that vectors along the loop can cover: the block's extent of its dim.
std::int64_t Chooser::ExtentOf(const Nest& nest, LoopId id) const {
  const PlanLoop& loop = plan_.loops[id];
  if (nest.Reduces(id)) return loop.extents.front();
  for (std::size_t depth = FirstOfNest(); depth < path_.size(); ++depth) {
    if (!nest.Reduces(path_[depth]->loop)) continue;
    if (!MovesEvenly(plan_, nest, depth)) break;
    const std::vector<TileDim> tile = TileInside(plan_, nest, depth);
    const auto inside = std::ranges::find(tile, loop.dim, &TileDim::dim);
    return inside == tile.end() ? loop.extents.front() : inside->extent;
  }
  return loop.extents.front();
}

// The depth of the nest's outermost loop. Loops are reordered only inside the nest.
std::size_t Chooser::FirstOfNest() const {
  std::size_t first = path_.size() - 1;
  while (first > 0 && path_[first - 1]->steps.size() == 1) --first;
  return first;
}

std::optional<Chooser::Columns> Chooser::Best(const Nest& nest) const {
  const std::vector<Columns> candidates = CandidatesOf(nest);
  if (candidates.empty()) return std::nullopt;
  const auto is_better = [](const Columns& a, const Columns& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.depth > b.depth;
  };
  const Columns best = *std::ranges::min_element(candidates, is_better);
  const auto annotated = std::ranges::find(candidates, true, &Columns::annotated);
  if (annotated == candidates.end()) return best;
  Columns chosen = *annotated;
  chosen.annotated = chosen.depth != best.depth;
  return chosen;
}

// The body as it would be with the loops that are innermost over their dims moved inside: an
// intermediate held for one iteration of such a loop is then held for all, and moves with it.
Body Chooser::Widened(const Body& body) const {
  Body widened = body;
  const auto widen = [&](Access& access) {
    const PlanBuffer& buffer = plan_.buffers[access.buffer];
    if (buffer.role != BufferSpec::Role::kScratch) return;
    const std::vector<DimId>& dims = tree_.program().nodes[buffer.node].dims;
    for (const LoopStep* step : path_) {
      const PlanLoop& loop = plan_.loops[step->loop];
      const auto at = std::ranges::find(dims, loop.dim);
      if (loop.step != 1 || at == dims.end() || StrideOf(access, step->loop) != 0) continue;
      std::int64_t stride = 1;
      for (auto i = static_cast<std::size_t>(at - dims.begin()) + 1; i < dims.size(); ++i) {
        stride *= buffer.extents[i];
      }
      access.terms.push_back({step->loop, stride});
    }
  };
  for (Statement& statement : widened.statements) {
    for (Operand& operand : statement.operands) {
      if (Access* access = std::get_if<Access>(&operand)) widen(*access);
    }
    if (statement.target.has_value()) widen(*statement.target);
  }
  return widened;
}

void Chooser::Decide(const Body& body) {
  if (path_.size() < 2 || !body.once.empty()) return;
  for (std::size_t depth = 0; depth < path_.size(); ++depth) {
    if (IsCut(depth)) return;  // another body under the same loop decided
  }
  const Nest nest{.loops = path_, .body = &body};
  const Body widened = Widened(body);
  const std::optional<Columns> columns = Best({.loops = path_, .body = &widened});
  if (!columns.has_value()) return;
  if (nest.reduction() == nullptr) {
    if (columns->depth + 1 < path_.size()) Add(CutAt(*columns, kMemoryVectors));
    return;
  }
  DecideReduction(nest, *columns);
}

void Chooser::DecideReduction(const Nest& nest, const Columns& columns) {
  const LoopId id = path_[columns.depth]->loop;
  const PlanLoop& loop = plan_.loops[id];
  const Lanes lanes = nest.Reduces(id) ? Lanes::kReduce : Lanes::kSpread;
  const std::optional<DimId> columns_dim =
      lanes == Lanes::kReduce ? std::nullopt : std::optional(loop.dim);
  std::optional<std::size_t> innermost;  // of the reduced loops
  for (std::size_t depth = FirstOfNest(); depth < path_.size(); ++depth) {
    if (!nest.Reduces(path_[depth]->loop) || !MovesEvenly(plan_, nest, depth)) continue;
    innermost = depth;
    const std::vector<TileDim> tile = TileInside(plan_, nest, depth);
    const auto most = static_cast<std::int64_t>(VectorsBeside(RowCount(tile, columns_dim), shape_));
    if (most == 0 || (lanes == Lanes::kReduce && RowCount(tile, columns_dim) > kReducingRows)) {
      continue;
    }
    if (lanes == Lanes::kReduce) return;
    const auto inside = std::ranges::find(tile, loop.dim, &TileDim::dim);
    if (columns.depth < depth) {
      if (inside != tile.end()) continue;
      Add(CutAt(columns, std::min(kBlockVectors, most)));
      return;
    }
    if (static_cast<std::int64_t>(PieceCount(inside->extent, ShapeAlong(*nest.body, id, shape_))) <=
        most)
      return;                                              // it fits
    if (inside->extent != loop.extents.front()) continue;  // the schedule already cut it
    Cut cut = CutAt(columns, most);
    cut.reduced = LoopAt(depth).ref;
    Add(std::move(cut));
    return;
  }
  if (innermost.has_value()) {
    Sink(*innermost, columns, lanes);
  } else if (lanes == Lanes::kSpread && columns.depth + 1 < path_.size()) {
    Add(CutAt(columns, kMemoryVectors));
  }
}

// Moves the innermost reduced loop inwards until what is left inside it fits.
void Chooser::Sink(std::size_t reduced, const Columns& columns, Lanes lanes) {
  std::map<DimId, std::int64_t> covered;  // rows, by dim
  std::int64_t rows = 1;
  std::int64_t columns_inside = 1;
  std::size_t depth = path_.size();
  for (; depth > reduced + 1; --depth) {
    const PlanLoop& loop = LoopAt(depth - 1);
    const std::int64_t loop_extent = loop.extents.front();
    if (lanes == Lanes::kSpread && loop.dim == LoopAt(columns.depth).dim) {
      const bool fits =
          PieceCount(loop_extent, shape_) <= VectorsBeside(static_cast<std::size_t>(rows), shape_);
      if (!fits && depth - 1 != columns.depth) break;  // only the chosen loop can be cut
      columns_inside = loop_extent;
      continue;
    }
    std::int64_t& extent = covered.try_emplace(loop.dim, 1).first->second;
    const std::int64_t more = rows / extent * loop_extent;
    if (loop_extent > shape_.registers ||
        VectorsBeside(static_cast<std::size_t>(more), shape_) < kLeastVectors ||
        (lanes == Lanes::kReduce && static_cast<std::size_t>(more) > kReducingRows)) {
      break;
    }
    extent = loop_extent;
    rows = more;
  }
  const auto most =
      static_cast<std::int64_t>(VectorsBeside(static_cast<std::size_t>(rows), shape_));
  Cut cut;
  if (lanes == Lanes::kSpread && (columns.depth < depth || static_cast<std::int64_t>(PieceCount(
                                                               columns_inside, shape_)) > most)) {
    cut = CutAt(columns, std::min(kBlockVectors, most));
  }
  cut.reduced = LoopAt(reduced).ref;
  for (std::size_t hoisted = reduced + 1; hoisted < depth; ++hoisted) {
    cut.hoisted.insert(*LoopAt(hoisted).ref);
  }
  if (cut.loop.has_value() || !cut.hoisted.empty()) Add(std::move(cut));
}

Cut Chooser::CutAt(const Columns& columns, std::int64_t vectors) const {
  const PlanLoop& loop = LoopAt(columns.depth);
  return {.loop = loop.ref,
          .width = StripWidth(loop.extents.front(), vectors, shape_),
          .reduced = std::nullopt,
          .hoisted = {},
          .annotated = columns.annotated};
}

void Chooser::Add(Cut cut) {
  const TreeRef top = cut.top();
  const bool holds_another = std::ranges::any_of(cuts_, [&](const Cut& other) {
    return top <= other.top() && other.top() < tree_.nodes()[top].end;
  });
  if (!holds_another) cuts_.push_back(std::move(cut));
}

// The loops of one operation after the cut, and the original loop of each.
struct CutLoops {
  std::vector<LoopSpec> loops;
  std::vector<TreeRef> origins;
};

CutLoops WithCut(std::span<const LoopSpec> loops, std::span<const TreeRef> refs, const Cut& cut) {
  CutLoops result;
  const auto index_of = [&](std::optional<TreeRef> ref) {
    return static_cast<std::size_t>(std::ranges::find(refs, ref) - refs.begin());
  };
  const std::size_t at = index_of(cut.loop);  // refs.size(): not one of these loops
  const std::size_t reduced = index_of(cut.reduced);
  const auto push = [&](LoopSpec loop, std::size_t origin) {
    result.loops.push_back(loop);
    result.origins.push_back(refs[origin]);
  };
  const auto push_whole = [&](std::size_t i) {
    LoopSpec loop = loops[i];
    if (i == at) {  // the loop over the strips
      loop.size = loops[at].size / cut.width;
      loop.tail = loops[at].size % cut.width;
      loop.annotation = Annotation::kNone;
    }
    push(loop, i);
  };
  const auto goes_out = [&](std::size_t i) { return i == at || cut.hoisted.contains(refs[i]); };
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (i == reduced) {
      for (std::size_t j = i + 1; j < loops.size(); ++j) {
        if (goes_out(j)) push_whole(j);
      }
    }
    if (reduced >= i || !goes_out(i)) push_whole(i);
  }
  if (at < refs.size()) {
    LoopSpec strip = loops[at];
    strip.size = cut.width;
    if (strip.annotation == Annotation::kThread) strip.annotation = Annotation::kNone;
    push(strip, at);
  }
  return result;
}

class Cutter {
 public:
  explicit Cutter(const LoopTree& tree) : tree_(tree), leaves_(LeavesOf(tree)) {}

  // nullopt: the cuts would change more than intended.
  std::optional<StripMinedTree> Make(const std::vector<Cut>& cuts) {
    Schedule schedule = tree_.schedule();
    for (NodeId node : leaves_) {
      const std::span<const TreeRef> refs = tree_.LoopsOf(node);
      origins_[node].assign(refs.begin(), refs.end());
      for (const Cut& cut : cuts) {
        if (!IsUnder(node, cut.top())) continue;
        if (!HasOnlyOwnLoops(tree_, node)) return std::nullopt;
        CutLoops made = WithCut(schedule[node].loops, refs, cut);
        schedule[node].loops = std::move(made.loops);
        origins_[node] = std::move(made.origins);
        is_changed_.insert(node);
        if (cut.loop.has_value()) has_strip_.insert(node);
      }
    }
    KeepApart(schedule);
    auto tree = tree_.WithSchedule(std::move(schedule));
    if (!tree.has_value() || !HasSameShape(*tree)) return std::nullopt;
    StripMinedTree result{.tree = *std::move(tree), .origins = {}, .effective = {}};
    result.origins.resize(result.tree.nodes().size());
    for (NodeId node : leaves_) {
      const std::span<const TreeRef> refs = result.tree.LoopsOf(node);
      for (std::size_t i = 0; i < refs.size(); ++i) result.origins[refs[i]] = origins_[node][i];
    }
    for (const Cut& cut : cuts) {
      if (cut.annotated) result.effective.insert(*cut.loop);
    }
    return result;
  }

 private:
  bool IsUnder(NodeId node, TreeRef loop) const {
    const TreeRef leaf = *tree_.LeafOf(node);
    return loop < leaf && leaf < tree_.nodes()[loop].end;
  }

  // Keeps changed loops that now match the next operation's from being merged with them.
  void KeepApart(Schedule& schedule) const {
    for (std::size_t i = 1; i < leaves_.size(); ++i) {
      const NodeId before = leaves_[i - 1];
      const NodeId node = leaves_[i];
      if (!is_changed_.contains(before) && !is_changed_.contains(node)) continue;
      if (tree_.nodes()[*tree_.LeafOf(before)].parent ==
          tree_.nodes()[*tree_.LeafOf(node)].parent) {
        continue;
      }
      std::vector<LoopSpec>& loops = schedule[before].loops;
      const std::size_t shared = SharedLoops(tree_, before, node);
      if (shared < loops.size()) loops[shared].reusable = false;
    }
  }

  // Operations that shared a body still do, and others share as many loops as before.
  bool HasSameShape(const LoopTree& made) const {
    if (LeavesOf(made) != leaves_) return false;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const NodeId node = leaves_[i];
      if (is_changed_.contains(node) && !HasOnlyOwnLoops(made, node)) return false;
      if (!is_changed_.contains(node) &&
          made.nodes()[*made.LeafOf(node)].depth != tree_.nodes()[*tree_.LeafOf(node)].depth) {
        return false;
      }
      if (i == 0) continue;
      const NodeId before = leaves_[i - 1];
      const TreeRef parent = tree_.nodes()[*tree_.LeafOf(node)].parent;
      const bool one_body = tree_.nodes()[*tree_.LeafOf(before)].parent == parent;
      const std::size_t added = one_body && has_strip_.contains(node) ? 1 : 0;
      if (SharedLoops(made, before, node) != SharedLoops(tree_, before, node) + added) return false;
    }
    return true;
  }

  const LoopTree& tree_;
  const std::vector<NodeId> leaves_;
  std::set<NodeId> is_changed_;
  std::set<NodeId> has_strip_;
  std::map<NodeId, std::vector<TreeRef>> origins_;
};

}  // namespace

std::optional<StripMinedTree> StripMine(const LoopTree& tree, const KernelPlan& plan,
                                        const VectorShape& shape) {
  const std::vector<Cut> cuts = Chooser(tree, plan, shape).Choose();
  if (cuts.empty()) return std::nullopt;
  return Cutter(tree).Make(cuts);
}

}  // namespace loopfleet::worker
