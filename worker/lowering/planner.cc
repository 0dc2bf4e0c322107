// PlanKernel: traces every operand of every leaf to the buffer that holds it, then lays out the
// buffers, then makes the steps in one walk over the tree.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/result.h"
#include "worker/lowering/access_map.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/parallel_loops.h"
#include "worker/lowering/scratch_layout.h"

namespace loopfleet::worker {
namespace {

using looptree::AffineTerm;
using looptree::Annotation;
using looptree::DimId;
using looptree::kNoParent;
using looptree::LoopTree;
using looptree::Node;
using looptree::NodeId;
using looptree::Op;
using looptree::Program;
using looptree::TreeNode;
using looptree::TreeRef;

using Extents = std::vector<std::int64_t>;  // distinct, largest first

std::unexpected<Failure> Fails(FailureCode code, std::string message) {
  return std::unexpected(Failure{.code = code, .message = std::move(message)});
}

// A leaf, with the facts about it looked up once.
struct Leaf {
  NodeId node = 0;
  std::uint32_t body = 0;          // leaves with the same number run together
  std::vector<TreeRef> around;     // all enclosing loops, outermost first
  std::span<const TreeRef> loops;  // those it runs over; the others are foreign to it
  std::vector<TreeRef> reduced;    // those of `loops` that it reduces over
  std::vector<TreeRef> repeating;  // foreign loops inside `reduced`
  std::vector<OperandSource> sources;
};

// Where the value of a node with a leaf is held.
struct Held {
  std::optional<BufferId> buffer;  // none: only inside its body
  std::optional<TreeRef> scope;    // none: held whole
};

class Planner {
 public:
  Planner(const LoopTree& tree, const PlanLimits& limits, ParallelLoops parallel)
      : tree_(tree), program_(tree.program()), limits_(limits) {
    plan_.not_parallel = std::move(parallel.refused);
    for (const std::vector<TreeRef>& group : parallel.groups) {
      parallel_.insert(parallel_.end(), group.begin(), group.end());
    }
    if (!parallel_.empty()) plan_.threads = limits_.threads;
  }

  std::expected<KernelPlan, Failure> Plan() {
    for (const looptree::Dim& dim : program_.dims) plan_.dim_sizes.push_back(dim.size);
    CollectLeaves();
    AddTensors();
    AddIntermediates();
    PlaceIntermediates();
    LF_TRY_VOID(CheckFootprint());
    AddLoops();
    plan_.steps = StepsUnder(std::nullopt);
    return std::move(plan_);
  }

 private:
  void CollectLeaves();
  Leaf LeafAt(TreeRef ref) const;
  std::vector<OperandSource> SourcesOf(NodeId node) const;
  void AddTensors();
  void AddIntermediates();
  void PlaceIntermediates();
  ScratchNeed NeedOf(const PlanBuffer& buffer) const;
  std::expected<void, Failure> CheckFootprint() const;
  void AddLoops();
  std::vector<Step> StepsUnder(std::optional<TreeRef> parent);
  void AddToBody(const Leaf& leaf, Body& body);
  Statement StatementOf(const Leaf& leaf) const;
  Operand OperandOf(const Leaf& leaf, const OperandSource& source) const;
  PlanIndex IndexOf(const Leaf& leaf, std::int64_t constant,
                    const std::vector<AffineTerm>& terms) const;
  std::vector<AccessGuard> GuardsOf(const Leaf& leaf,
                                    const std::vector<looptree::IndexGuard>& guards) const;
  Access AccessTo(const Leaf& leaf, BufferId buffer, std::optional<TreeRef> scope,
                  const AccessMap& map) const;
  Step InitialiserOf(const Leaf& leaf, const Statement& statement);
  BufferId AddBuffer(BufferSpec::Role role, NodeId node, std::vector<std::int64_t> extents);

  bool AtOrAbove(TreeRef loop, std::optional<TreeRef> scope) const {
    return scope.has_value() && loop <= *scope && *scope < tree_.nodes()[loop].end;
  }
  LoopId LoopIdOf(TreeRef ref) const { return loop_ids_.at(ref); }

  const LoopTree& tree_;
  const Program& program_;
  const PlanLimits limits_;
  KernelPlan plan_;
  std::vector<TreeRef> parallel_;  // ascending
  std::map<NodeId, Leaf> leaves_;
  std::map<NodeId, BufferId> tensors_;  // of reads and writes
  std::map<NodeId, Held> held_;         // of nodes with a leaf
  std::map<TreeRef, LoopId> loop_ids_;
  std::map<LoopId, std::vector<Step>> initialisers_;  // not yet attached to their loop
  std::map<NodeId, std::uint32_t> index_in_body_;     // of its statement
};

void Planner::CollectLeaves() {
  const std::span<const TreeNode> nodes = tree_.nodes();
  std::uint32_t body = 0;
  std::optional<TreeRef> open;  // the previous leaf, if its body may go on
  for (TreeRef ref = 0; ref < nodes.size(); ++ref) {
    if (nodes[ref].kind != TreeNode::Kind::kOperation) continue;
    Leaf leaf = LeafAt(ref);
    const bool goes_on = open.has_value() && *open + 1 == ref &&
                         nodes[*open].parent == nodes[ref].parent && leaf.repeating.empty();
    leaf.body = goes_on ? body : ++body;
    open = leaf.reduced.empty() ? std::optional(ref) : std::nullopt;
    const NodeId node = leaf.node;
    leaves_.emplace(node, std::move(leaf));
  }
}

Leaf Planner::LeafAt(TreeRef ref) const {
  const std::span<const TreeNode> nodes = tree_.nodes();
  const NodeId node = nodes[ref].node;
  Leaf leaf{.node = node,
            .body = 0,
            .around = {},
            .loops = tree_.LoopsOf(node),
            .reduced = {},
            .repeating = {},
            .sources = SourcesOf(node)};
  for (TreeRef up = nodes[ref].parent; up != kNoParent; up = nodes[up].parent) {
    leaf.around.insert(leaf.around.begin(), up);
  }
  const std::vector<DimId> reduced_dims = program_.ReducedDims(node);
  for (TreeRef loop : leaf.around) {
    const bool own = std::ranges::find(leaf.loops, loop) != leaf.loops.end();
    if (!own && !leaf.reduced.empty()) leaf.repeating.push_back(loop);
    if (own && std::ranges::find(reduced_dims, nodes[loop].dim) != reduced_dims.end()) {
      leaf.reduced.push_back(loop);
    }
  }
  return leaf;
}

std::vector<OperandSource> Planner::SourcesOf(NodeId id) const {
  const Node& node = program_.nodes[id];
  if (node.op == Op::kConstant) return {FoldedConstant{node.constant}};
  if (node.op == Op::kRead) return {WholeOf(program_, id)};
  if (node.op == Op::kView) return {ResolveViewInput(tree_, id)};
  std::vector<OperandSource> sources;
  for (NodeId input : node.inputs) sources.push_back(ResolveOperand(tree_, input));
  return sources;
}

BufferId Planner::AddBuffer(BufferSpec::Role role, NodeId node, std::vector<std::int64_t> extents) {
  PlanBuffer buffer{.role = role,
                    .node = node,
                    .extents = std::move(extents),
                    .element_count = 1,
                    .scratch_offset = 0};
  for (std::int64_t extent : buffer.extents) buffer.element_count *= extent;
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(plan_.buffers.size() - 1);
}

void Planner::AddTensors() {
  const auto add = [&](BufferSpec::Role role, NodeId node) {
    std::vector<std::int64_t> extents;
    for (DimId dim : program_.nodes[node].dims) extents.push_back(program_.dims[dim].size);
    LF_CHECK(!tensors_.contains(node), "%{} is passed twice", node);
    tensors_[node] = AddBuffer(role, node, std::move(extents));
  };
  for (NodeId node : program_.inputs) add(BufferSpec::Role::kInput, node);
  for (NodeId node : program_.outputs) add(BufferSpec::Role::kOutput, node);
}

void Planner::AddIntermediates() {
  for (const auto& [node, leaf] : leaves_) {
    if (program_.nodes[node].op == Op::kWrite) {
      held_[node] = {.buffer = tensors_.at(node), .scope = std::nullopt};
      continue;
    }
    // A value without readers is stored as well: its work was requested and is counted.
    const std::vector<NodeId> readers = tree_.ReadersOf(node);
    const bool stored = !leaf.reduced.empty() || readers.empty() ||
                        std::ranges::any_of(readers, [&](NodeId reader) {
                          return leaves_.at(reader).body != leaf.body;
                        });
    Held& held = held_[node];
    held.scope = tree_.ScopeOf(node);
    if (!stored) continue;
    std::vector<std::int64_t> extents;
    for (DimId dim : program_.nodes[node].dims) extents.push_back(tree_.BufferExtent(node, dim));
    held.buffer = AddBuffer(BufferSpec::Role::kScratch, node, std::move(extents));
  }
}

// From the scope's child that holds the producer to the end of the one that holds the last reader.
ScratchNeed Planner::NeedOf(const PlanBuffer& buffer) const {
  const std::span<const TreeNode> nodes = tree_.nodes();
  const TreeRef scope = held_.at(buffer.node).scope.value_or(kNoParent);
  TreeRef first = *tree_.LeafOf(buffer.node);
  TreeRef last = first;
  for (NodeId reader : tree_.ReadersOf(buffer.node)) last = std::max(last, *tree_.LeafOf(reader));
  while (nodes[first].parent != scope) first = nodes[first].parent;
  while (nodes[last].parent != scope) last = nodes[last].parent;
  return {.bytes = static_cast<std::uint64_t>(buffer.element_count) * sizeof(float),
          .begin = first,
          .end = nodes[last].end};
}

// First the shared intermediates, then those private to the first thread, the second, and so on.
void Planner::PlaceIntermediates() {
  for (bool per_thread : {false, true}) {
    std::vector<ScratchNeed> needs;
    std::vector<PlanBuffer*> buffers;
    for (PlanBuffer& buffer : plan_.buffers) {
      if (buffer.role != BufferSpec::Role::kScratch) continue;
      buffer.per_thread = std::ranges::any_of(
          parallel_, [&](TreeRef loop) { return AtOrAbove(loop, held_.at(buffer.node).scope); });
      if (buffer.per_thread != per_thread) continue;
      buffers.push_back(&buffer);
      needs.push_back(NeedOf(buffer));
    }
    const ScratchLayout layout = LayOutScratch(needs);
    const bool elsewhere = per_thread && limits_.private_scratch == PlanLimits::Private::kElsewhere;
    const std::uint64_t start = elsewhere ? 0 : plan_.scratch_bytes;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i]->scratch_offset = static_cast<std::int64_t>(start + layout.offsets[i]);
    }
    const std::uint64_t copies = elsewhere ? 0 : per_thread ? plan_.threads : 1;
    plan_.scratch_bytes += layout.bytes * copies;
    if (per_thread) plan_.thread_bytes = layout.bytes;
  }
}

std::expected<void, Failure> Planner::CheckFootprint() const {
  std::uint64_t total = plan_.scratch_bytes;  // sizes were checked when the tree was built
  std::uint64_t padding = 0;                  // Build() counted none
  for (const PlanBuffer& buffer : plan_.buffers) {
    if (buffer.role == BufferSpec::Role::kScratch) {
      padding += kScratchAlignment;
      continue;
    }
    total += static_cast<std::uint64_t>(buffer.element_count) * sizeof(float);
  }
  if (total <= limits_.footprint_bytes + padding) return {};
  return Fails(FailureCode::kLimitFootprint,
               fmt::format("the tensors and intermediates need {} bytes; {} are allowed", total,
                           limits_.footprint_bytes));
}

// The extents that a loop's inner loops of the same dim can have.
Extents InnerExtents(const Extents& extents, std::int64_t step) {
  Extents inner;
  for (std::int64_t extent : extents) {
    if (extent >= step) inner.push_back(step);
    if (extent % step != 0) inner.push_back(extent % step);
  }
  std::ranges::sort(inner, std::greater<>());
  inner.erase(std::unique(inner.begin(), inner.end()), inner.end());
  return inner;
}

void Planner::AddLoops() {
  const std::span<const TreeNode> nodes = tree_.nodes();
  for (TreeRef ref = 0; ref < nodes.size(); ++ref) {
    if (nodes[ref].kind != TreeNode::Kind::kLoop) continue;
    PlanLoop loop{.ref = ref,
                  .dim = nodes[ref].dim,
                  .step = nodes[ref].inner,
                  .extents = {program_.dims[nodes[ref].dim].size},
                  .annotation = nodes[ref].annotation,
                  .parallel = std::ranges::binary_search(parallel_, ref)};
    for (TreeRef up = nodes[ref].parent; up != kNoParent; up = nodes[up].parent) {
      if (nodes[up].dim != loop.dim) continue;
      const PlanLoop& outer = plan_.loops[LoopIdOf(up)];
      loop.extents = InnerExtents(outer.extents, outer.step);
      break;
    }
    loop_ids_[ref] = static_cast<LoopId>(plan_.loops.size());
    plan_.loops.push_back(std::move(loop));
  }
}

std::vector<Step> Planner::StepsUnder(std::optional<TreeRef> parent) {
  std::vector<Step> steps;
  std::optional<std::uint32_t> open_body;
  for (TreeRef child : tree_.Children(parent)) {
    const TreeNode& node = tree_.nodes()[child];
    if (node.kind == TreeNode::Kind::kLoop) {
      open_body.reset();
      LoopStep loop{.loop = LoopIdOf(child), .prepare = {}, .steps = StepsUnder(child)};
      loop.prepare = std::exchange(initialisers_[loop.loop], {});
      steps.push_back({std::move(loop)});
      continue;
    }
    const Leaf& leaf = leaves_.at(node.node);
    if (open_body != leaf.body) {
      open_body = leaf.body;
      steps.push_back({Body{}});
    }
    AddToBody(leaf, std::get<Body>(steps.back().what));
  }
  return steps;
}

void Planner::AddToBody(const Leaf& leaf, Body& body) {
  Statement statement = StatementOf(leaf);
  if (!leaf.reduced.empty()) {
    initialisers_[statement.reduced.front()].push_back(InitialiserOf(leaf, statement));
  }
  for (TreeRef loop : leaf.repeating) body.once.push_back(LoopIdOf(loop));
  index_in_body_[leaf.node] = static_cast<std::uint32_t>(body.statements.size());
  body.statements.push_back(std::move(statement));
}

Statement Planner::StatementOf(const Leaf& leaf) const {
  const Op op = program_.nodes[leaf.node].op;
  Statement statement{.node = leaf.node, .op = op, .operands = {}, .target = {}, .reduced = {}};
  for (const OperandSource& source : leaf.sources) {
    statement.operands.push_back(OperandOf(leaf, source));
  }
  const bool passes_on =
      op == Op::kRead || op == Op::kView || op == Op::kWrite || op == Op::kConstant ||
      op == Op::kName ||
      // A reduction of one element, over dims that need no loops.
      (leaf.reduced.empty() && leaf.sources.size() == 1 &&
       (op == Op::kAdd || op == Op::kMultiply || op == Op::kMin || op == Op::kMax));
  if (passes_on) statement.op = Op::kCopy;
  for (TreeRef loop : leaf.reduced) statement.reduced.push_back(LoopIdOf(loop));
  const Held& held = held_.at(leaf.node);
  if (held.buffer.has_value()) {
    statement.target = AccessTo(leaf, *held.buffer, held.scope, WholeOf(program_, leaf.node));
  }
  return statement;
}

Operand Planner::OperandOf(const Leaf& leaf, const OperandSource& source) const {
  if (const auto* constant = std::get_if<FoldedConstant>(&source)) {
    return Literal{constant->value, GuardsOf(leaf, constant->guards)};
  }
  const AccessMap& map = std::get<AccessMap>(source);
  const auto producer = leaves_.find(map.stored);
  // A read's own leaf reads the tensor, not the copy that it makes.
  if (producer == leaves_.end() || map.stored == leaf.node) {
    return AccessTo(leaf, tensors_.at(map.stored), std::nullopt, map);
  }
  // The two run at the same point of the same loops; LoopTree::Build refuses a view that would read
  // another point. Its guards may be over dims that the producer lacks.
  if (producer->second.body == leaf.body) {
    return ValueOf{index_in_body_.at(map.stored), GuardsOf(leaf, map.guards)};
  }
  const Held& held = held_.at(map.stored);
  return AccessTo(leaf, *held.buffer, held.scope, map);
}

PlanIndex Planner::IndexOf(const Leaf& leaf, std::int64_t constant,
                           const std::vector<AffineTerm>& terms) const {
  std::map<TreeRef, std::int64_t> strides;  // refs ascend from the outermost loop inwards
  for (const AffineTerm& term : terms) {
    for (TreeRef loop : leaf.loops) {
      if (tree_.nodes()[loop].dim == term.dim) strides[loop] += term.coefficient;
    }
  }
  PlanIndex index{.constant = constant, .terms = {}};
  for (const auto& [loop, stride] : strides) {
    if (stride != 0) index.terms.push_back({LoopIdOf(loop), stride});
  }
  return index;
}

std::vector<AccessGuard> Planner::GuardsOf(const Leaf& leaf,
                                           const std::vector<looptree::IndexGuard>& guards) const {
  std::vector<AccessGuard> planned;
  for (const looptree::IndexGuard& guard : guards) {
    planned.push_back({.index = IndexOf(leaf, guard.constant, guard.terms),
                       .divisor = guard.divisor,
                       .size = guard.size,
                       .outside = guard.outside});
  }
  return planned;
}

// The buffer is made once in each iteration of its scope, so loops at or above the scope do not
// count where the buffer's dims are indexed one to one. LoopTree::Build refuses any other index
// over such a dim.
Access Planner::AccessTo(const Leaf& leaf, BufferId id, std::optional<TreeRef> scope,
                         const AccessMap& map) const {
  const PlanBuffer& buffer = plan_.buffers[id];
  const Node& stored = program_.nodes[map.stored];
  std::map<TreeRef, std::int64_t> strides;  // refs ascend from the outermost loop inwards
  Access access{.buffer = id, .constant = 0, .terms = {}, .guards = GuardsOf(leaf, map.guards)};
  std::int64_t stride = 1;
  for (std::size_t i = stored.dims.size(); i-- > 0;) {
    const AffineIndex& index = map.indices[i];
    if (index.divisor != 1) {
      access.quotients.push_back({.index = IndexOf(leaf, index.constant, index.terms),
                                  .divisor = index.divisor,
                                  .stride = stride});
      stride *= buffer.extents[i];
      continue;
    }
    const bool one_to_one = index.IsIdentityOf(stored.dims[i]);
    access.constant += index.constant * stride;
    for (const AffineTerm& term : index.terms) {
      for (TreeRef loop : leaf.loops) {
        if (tree_.nodes()[loop].dim != term.dim || (one_to_one && AtOrAbove(loop, scope))) continue;
        strides[loop] += term.coefficient * stride;
      }
    }
    stride *= buffer.extents[i];
  }
  for (const auto& [loop, loop_stride] : strides) {
    if (loop_stride != 0) access.terms.push_back({LoopIdOf(loop), loop_stride});
  }
  return access;
}

// One loop over each dim of the target that runs inside the outermost reduced loop, in the order of
// the target's layout.
Step Planner::InitialiserOf(const Leaf& leaf, const Statement& statement) {
  const LoopId outermost = statement.reduced.front();
  const Access& target = *statement.target;
  Access filled{.buffer = target.buffer, .constant = target.constant, .terms = {}};
  const auto inside = [&](LoopId loop) { return loop > outermost; };  // ids ascend inwards
  for (const AccessTerm& term : target.terms) {
    if (!inside(term.loop)) filled.terms.push_back(term);
  }
  std::vector<LoopId> loops;
  for (DimId dim : program_.nodes[leaf.node].dims) {
    const auto at = std::ranges::find_if(target.terms, [&](const AccessTerm& term) {
      return inside(term.loop) && plan_.loops[term.loop].dim == dim;
    });
    if (at == target.terms.end()) continue;
    PlanLoop loop{.ref = std::nullopt,
                  .dim = dim,
                  .step = 1,
                  .extents = plan_.loops[at->loop].extents,
                  .annotation = Annotation::kNone};
    loops.push_back(static_cast<LoopId>(plan_.loops.size()));
    filled.terms.push_back({loops.back(), at->stride});
    plan_.loops.push_back(std::move(loop));
  }
  Body body;
  body.statements.push_back({.node = leaf.node,
                             .op = Op::kCopy,
                             .operands = {Literal{ReductionIdentity(statement.op)}},
                             .target = std::move(filled),
                             .reduced = {}});
  Step step{std::move(body)};
  for (std::size_t i = loops.size(); i-- > 0;) {
    LoopStep around{.loop = loops[i], .prepare = {}, .steps = {}};
    around.steps.push_back(std::move(step));
    step = Step{std::move(around)};
  }
  return step;
}

}  // namespace

std::expected<KernelPlan, Failure> PlanKernel(const LoopTree& tree, const PlanLimits& limits) {
  if (limits.threads < 2) return PlanKernel(tree, limits, ParallelLoops{});
  ParallelLoops parallel = FindParallelLoops(tree);
  auto plan = PlanKernel(tree, limits, parallel);
  if (plan.has_value()) return plan;
  // Each thread has its own intermediates. A tree that was accepted has room for one thread's.
  for (const std::vector<TreeRef>& group : parallel.groups) {
    for (const TreeRef loop : group) {
      parallel.refused.emplace(loop, "the intermediates of all threads need too much memory");
    }
  }
  parallel.groups.clear();
  return PlanKernel(tree, limits, std::move(parallel));
}

std::expected<KernelPlan, Failure> PlanKernel(const LoopTree& tree, const PlanLimits& limits,
                                              ParallelLoops parallel) {
  return Planner(tree, limits, std::move(parallel)).Plan();
}

}  // namespace loopfleet::worker
