#include "common/looptree/tree/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"
#include "common/base/result.h"
#include "common/looptree/program/checked_math.h"
#include "common/looptree/program/view_map.h"

namespace loopfleet::looptree {
namespace {

constexpr std::uint32_t kMaxDepth = 32;  // capacity of the builder; Limits may set less

std::string NodeText(const Program& program, NodeId id) {
  return fmt::format("node {} ({})", id, OpName(program.nodes[id].op));
}

// An open loop: the next operation may join it.
struct OpenLoop {
  DimId dim;
  std::uint32_t dim_depth;
  std::int64_t size;
  std::int64_t tail;
  Annotation annotation;
  TreeRef ref;

  bool SamePlace(const OpenLoop& other) const {
    return dim == other.dim && dim_depth == other.dim_depth;
  }
  bool SameLoop(const OpenLoop& other) const {
    return SamePlace(other) && size == other.size && tail == other.tail;
  }
  bool DiffersInSize(const OpenLoop& other) const { return SamePlace(other) && !SameLoop(other); }
  bool DiffersInAnnotation(const OpenLoop& other) const {
    return SamePlace(other) && EffectOf(annotation) != EffectOf(other.annotation);
  }
};

// At most kMaxDepth loops, outermost first, without allocation.
class Chain {
 public:
  std::size_t size() const { return size_; }
  const OpenLoop& operator[](std::size_t i) const { return loops_[i]; }
  OpenLoop& operator[](std::size_t i) { return loops_[i]; }
  void Cut(std::size_t size) { size_ = std::min(size_, size); }
  [[nodiscard]] bool Append(const OpenLoop& loop) {
    if (size_ == loops_.size()) return false;
    loops_[size_++] = loop;
    return true;
  }

  template <class Predicate>
  std::size_t Find(Predicate predicate) const {
    std::size_t i = 0;
    while (i < size_ && !predicate(loops_[i])) ++i;
    return i;
  }

 private:
  std::array<OpenLoop, kMaxDepth> loops_;
  std::size_t size_ = 0;
};

}  // namespace

// Spec B.3, step by step. Run() is called once.
class TreeBuilder {
 public:
  static Checked<LoopTree> Build(std::shared_ptr<const Program> program,
                                 std::shared_ptr<const ProgramFacts> facts, Schedule schedule,
                                 const Limits& limits) {
    TreeBuilder builder(std::move(program), std::move(facts), std::move(schedule), limits);
    LF_TRY_VOID(builder.Run());
    return std::move(builder.tree_);
  }

 private:
  TreeBuilder(std::shared_ptr<const Program> program, std::shared_ptr<const ProgramFacts> facts,
              Schedule schedule, const Limits& limits)
      : body_(std::make_shared<LoopTree::Body>()),
        program_(*program),
        facts_(*facts),
        limits_(limits) {
    body_->program = std::move(program);
    body_->facts = std::move(facts);
    body_->schedule = std::move(schedule);
    tree_.body_ = body_;
  }

  Checked<void> Run() {
    body_->leaves.assign(program_.nodes.size(), kNoParent);
    LF_TRY_VOID(ReserveLoops());
    for (const NodeId id : facts_.order) {
      if (!HasLeaf(id)) {
        LF_TRY_VOID(CheckSkipped(id));
        continue;
      }
      LF_TRY_VOID(ReadOwnLoops(id));
      const bool joins = RunsInOpenLoops();
      if (!joins) CutMismatches(&OpenLoop::DiffersInSize);        // step 1
      if (facts_.has_views) CutViewed();                          // step 2
      if (!joins) CutMismatches(&OpenLoop::DiffersInAnnotation);  // step 3
      LF_TRY_VOID(Place(id, joins ? AllMatched() : Matched()));
      LF_TRY_VOID(FoldLoops(id));
      Close(id);
    }
    SetEnds();
    if (facts_.has_views) LF_TRY_VOID(CheckViews());
    return CheckFootprint();
  }

  // An operation without dimensions needs no loops; any other without loops has no leaf.
  bool HasLeaf(NodeId id) const {
    if (!body_->schedule[id].loops.empty()) return true;
    const Node& node = program_.nodes[id];
    return node.dims.empty() && facts_.nodes[id].iteration.empty() && node.op != Op::kRead &&
           node.op != Op::kView && node.op != Op::kConstant;
  }

  Checked<void> CheckSkipped(NodeId id) const {
    const Op op = program_.nodes[id].op;
    if (op == Op::kRead || op == Op::kView || op == Op::kConstant) return {};
    return Reject(
        RejectionCode::kInvalidBenchmark,
        fmt::format("{} has no loops; only reads and views may have none", NodeText(program_, id)));
  }

  Checked<void> ReserveLoops() {
    std::uint32_t count = 0;
    body_->loop_begins.reserve(program_.nodes.size() + 1);
    for (const NodeSchedule& node : body_->schedule) {
      if (node.loops.size() > std::min(kMaxDepth, limits_.tree_depth)) return TooDeep();
      body_->loop_begins.push_back(count);
      count += static_cast<std::uint32_t>(node.loops.size());
    }
    body_->loop_begins.push_back(count);
    body_->loop_refs.resize(count);
    body_->nodes.reserve(count + program_.nodes.size());
    return {};
  }

  std::unexpected<Rejection> TooDeep() const {
    return Reject(RejectionCode::kLimitTree, fmt::format("more than {} loops inside each other",
                                                         std::min(kMaxDepth, limits_.tree_depth)));
  }

  Checked<void> ReadOwnLoops(NodeId id) {
    own_.Cut(0);
    std::array<std::uint8_t, kMaxDims> depths{};
    for (const LoopSpec& loop : body_->schedule[id].loops) {
      if (loop.dim >= program_.dims.size() || !facts_.nodes[id].iteration.Has(loop.dim)) {
        return Reject(RejectionCode::kInvalidBenchmark,
                      fmt::format("{} has a loop over a dimension that it does not run over",
                                  NodeText(program_, id)));
      }
      const std::uint32_t depth = depths[loop.dim]++;
      if (!own_.Append({loop.dim, depth, loop.size, loop.tail, loop.annotation, kNoParent})) {
        return TooDeep();
      }
    }
    return {};
  }

  // The usual case by far: the operation's own loops are the first loops of the chain, in its
  // order. Places in the chain are unique, so steps 1 and 3 cut nothing and step 4 reuses every
  // loop.
  bool RunsInOpenLoops() const {
    if (own_.size() > open_.size()) return false;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      if (!open_[i].SameLoop(own_[i]) || open_[i].DiffersInAnnotation(own_[i])) return false;
    }
    return true;
  }
  std::size_t AllMatched() {
    for (std::size_t i = 0; i < own_.size(); ++i) own_[i].ref = open_[i].ref;
    position_ = own_.size();
    return own_.size();
  }

  void CutMismatches(bool (OpenLoop::*differs)(const OpenLoop&) const) {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      open_.Cut(open_.Find([&](const OpenLoop& open) { return (open.*differs)(own_[i]); }));
    }
  }

  void CutViewed() {
    DimSet scheduled;
    for (std::size_t i = 0; i < own_.size(); ++i) scheduled.Add(own_[i].dim);
    DimSet bases;
    for (std::size_t i = 0; i < own_.size(); ++i) bases.Add(facts_.base[own_[i].dim]);
    open_.Cut(open_.Find([&](const OpenLoop& open) {
      return bases.Has(facts_.base[open.dim]) && !scheduled.Has(open.dim);
    }));
  }

  // Step 4: the number of own loops, from the outermost, that are loops of the chain in the same
  // order.
  std::size_t Matched() {
    std::array<std::size_t, kMaxDepth> offsets;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      offsets[i] = open_.Find([&](const OpenLoop& open) { return open.SameLoop(own_[i]); });
    }
    std::size_t matched = 0;
    position_ = 0;
    for (; matched < own_.size(); ++matched) {
      const std::size_t offset = offsets[matched];
      const bool in_order = std::all_of(offsets.begin() + matched, offsets.begin() + own_.size(),
                                        [&](std::size_t later) { return offset <= later; });
      if (offset == open_.size() || !in_order) break;
      own_[matched].ref = open_[offset].ref;
      position_ = offset + 1;
    }
    return matched;
  }

  // Steps 5 and 6.
  Checked<void> Place(NodeId id, std::size_t matched) {
    for (std::size_t i = matched; i < own_.size(); ++i) {
      open_.Cut(position_);
      if (open_.size() >= limits_.tree_depth) return TooDeep();
      LF_TRY(own_[i].ref, AddNode());
      TreeNode& node = body_->nodes.back();
      node.kind = TreeNode::Kind::kLoop;
      node.dim = own_[i].dim;
      node.dim_depth = own_[i].dim_depth;
      node.size = own_[i].size;
      node.tail = own_[i].tail;
      node.annotation = own_[i].annotation;
      if (!open_.Append(own_[i])) return TooDeep();
      position_ = open_.size();
    }
    LF_TRY(body_->leaves[id], AddNode());
    TreeNode& leaf = body_->nodes.back();
    leaf.kind = TreeNode::Kind::kOperation;
    leaf.node = id;
    return {};
  }

  Checked<TreeRef> AddNode() {
    if (body_->nodes.size() >= limits_.tree_nodes) {
      return Reject(RejectionCode::kLimitTree,
                    fmt::format("the tree has more than {} nodes", limits_.tree_nodes));
    }
    const auto ref = static_cast<TreeRef>(body_->nodes.size());
    TreeNode& node = body_->nodes.emplace_back();
    node.depth = static_cast<std::uint32_t>(open_.size());
    if (open_.size() > 0) node.parent = open_[open_.size() - 1].ref;
    return ref;
  }

  // Checks that the own loops cover each dimension exactly, and records the elements per iteration.
  Checked<void> FoldLoops(NodeId id) {
    std::array<std::int64_t, kMaxDims> covered;
    covered.fill(1);
    TreeRef* const refs = body_->loop_refs.data() + body_->loop_begins[id];
    DimSet missing = facts_.nodes[id].iteration;
    for (std::size_t i = own_.size(); i-- > 0;) {
      const OpenLoop& loop = own_[i];
      std::int64_t& inner = covered[loop.dim];
      refs[i] = loop.ref;
      const auto total = CheckedMultiplyAdd(loop.size, inner, loop.tail);
      if (loop.size < 1 || loop.tail < 0 || loop.tail >= inner) {
        return Reject(RejectionCode::kInvalidBenchmark,
                      fmt::format("{}: a loop over {} has size {} and tail {}: the size must be at"
                                  " least 1, the tail less than the {} elements of one iteration",
                                  NodeText(program_, id), program_.dims[loop.dim].name, loop.size,
                                  loop.tail, inner));
      }
      if (!total) return WrongCover(id, loop.dim);
      TreeNode& node = body_->nodes[loop.ref];
      node.inner = std::max(node.inner, inner);
      inner = *total;
      DimSet seen;
      seen.Add(loop.dim);
      missing = missing - seen;
    }
    for (DimId dim = 0; dim < program_.dims.size(); ++dim) {
      if (!facts_.nodes[id].iteration.Has(dim)) continue;
      if (missing.Has(dim) || covered[dim] != program_.dims[dim].size) return WrongCover(id, dim);
    }
    return {};
  }

  std::unexpected<Rejection> WrongCover(NodeId id, DimId dim) const {
    return Reject(
        RejectionCode::kInvalidBenchmark,
        fmt::format("{}: its loops over {} do not cover {} elements", NodeText(program_, id),
                    program_.dims[dim].name, program_.dims[dim].size));
  }

  // Steps 7 and 8: which loops the next operation may still join.
  void Close(NodeId id) {
    const DimSet reduced = facts_.nodes[id].reduced;
    open_.Cut(open_.Find([&](const OpenLoop& open) { return reduced.Has(open.dim); }));
    const auto& loops = body_->schedule[id].loops;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].reusable) continue;
      open_.Cut(open_.Find([&](const OpenLoop& open) { return open.SameLoop(own_[i]); }));
    }
  }

  void SetEnds() {
    auto& nodes = body_->nodes;
    for (TreeRef ref = static_cast<TreeRef>(nodes.size()); ref-- > 0;) {
      nodes[ref].end = std::max(nodes[ref].end, ref + 1);
      if (nodes[ref].parent != kNoParent) {
        TreeNode& parent = nodes[nodes[ref].parent];
        parent.end = std::max(parent.end, nodes[ref].end);
      }
    }
  }

  // A view may read at another index than its own. Inside a loop that computes the node it reads,
  // the element there may not be computed yet, so readers inside must read the loop's dimension at
  // their own index. Readers outside of the loop may read at any.
  Checked<void> CheckViews() const {
    for (NodeId id = 0; id < program_.nodes.size(); ++id) {
      if (body_->leaves[id] != kNoParent) LF_TRY_VOID(CheckReads(id, id, {}));
    }
    return {};
  }

  // Of the readers of `id` through `via`, a view of it or itself; `moved`: the dims that the views
  // up to there read at another index.
  Checked<void> CheckReads(NodeId id, NodeId via, DimSet moved) const {
    for (const NodeId consumer : facts_.nodes[via].consumers) {
      const Node& node = program_.nodes[consumer];
      DimSet all_moved = moved;
      for (const ViewIndex& index : node.view) {
        const bool same = index.constant == 0 && index.divisor == 1 && index.terms.size() == 1 &&
                          index.terms[0] == AffineTerm{index.input_dim, 1};
        if (!same) all_moved.Add(index.input_dim);
      }
      const TreeRef leaf = body_->leaves[consumer];
      if (leaf == kNoParent) {
        LF_TRY_VOID(CheckReads(id, consumer, all_moved));
        continue;
      }
      for (const TreeRef loop : tree_.LoopsOf(id)) {
        const TreeNode& node_of_loop = body_->nodes[loop];
        if (leaf <= loop || leaf >= node_of_loop.end || !all_moved.Has(node_of_loop.dim)) continue;
        return Reject(RejectionCode::kUnsupported,
                      fmt::format("{} reads {} inside the loop over {} that computes it",
                                  NodeText(program_, consumer), NodeText(program_, id),
                                  program_.dims[node_of_loop.dim].name));
      }
    }
    return {};
  }

  Checked<void> CheckFootprint() const {
    const std::uint64_t bytes = facts_.tensor_bytes + tree_.ScratchBytes();
    if (bytes <= limits_.footprint_bytes) return {};
    return Reject(
        RejectionCode::kLimitFootprint,
        fmt::format("tensors and intermediate buffers need {} bytes; at most {} are allowed", bytes,
                    limits_.footprint_bytes));
  }

  LoopTree tree_;                         // shares body_; answers queries while building
  std::shared_ptr<LoopTree::Body> body_;  // changed only while this builder runs
  const Program& program_;
  const ProgramFacts& facts_;
  const Limits& limits_;
  Chain open_;  // loops that the next operation may join (the spec's "available")
  Chain own_;   // of the operation being placed
  std::size_t position_ = 0;
};

Checked<LoopTree> BuildTree(std::shared_ptr<const Program> program,
                            std::shared_ptr<const ProgramFacts> facts, Schedule schedule,
                            const Limits& limits) {
  return TreeBuilder::Build(std::move(program), std::move(facts), std::move(schedule), limits);
}

Checked<LoopTree> LoopTree::Build(std::shared_ptr<const Program> program, Schedule schedule,
                                  const Limits& limits) {
  if (schedule.size() != program->nodes.size()) {
    return Reject(
        RejectionCode::kInvalidBenchmark,
        fmt::format("{} operations but {} schedules", program->nodes.size(), schedule.size()));
  }
  std::vector<double> priorities(schedule.size());
  std::transform(schedule.begin(), schedule.end(), priorities.begin(),
                 [](const NodeSchedule& node) { return node.priority; });
  LF_TRY(auto facts, ProgramFacts::Of(*program, priorities, limits));
  if (auto plain = Plain(*program)) program = std::make_shared<const Program>(*std::move(plain));
  return BuildTree(std::move(program), std::move(facts), std::move(schedule), limits);
}

Checked<LoopTree> LoopTree::WithSchedule(Schedule schedule, const Limits& limits) const {
  LF_CHECK(schedule.size() == body_->schedule.size(), "{} schedules for {} operations",
           schedule.size(), body_->schedule.size());
  return BuildTree(body_->program, body_->facts, std::move(schedule), limits);
}

}  // namespace loopfleet::looptree
