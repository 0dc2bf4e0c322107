// PlanKernel. First every operand of every leaf is traced to what holds it; from who reads what
// follow the scopes, from these the buffers; then one walk over the tree makes the steps.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/result.h"
#include "worker/lowering/access_map.h"
#include "worker/lowering/checked_integer.h"
#include "worker/lowering/kernel_plan.h"

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

constexpr std::int64_t kScratchAlignment = 64;  // bytes: one cache line, one AVX-512 register

using Extents = std::vector<std::int64_t>;  // distinct, largest first

std::unexpected<Failure> Fails(FailureCode code, std::string message) {
  return std::unexpected(Failure{.code = code, .message = std::move(message)});
}

bool CanReduce(Op op) {
  return op == Op::kAdd || op == Op::kMultiply || op == Op::kMin || op == Op::kMax;
}

// How many operands `op` takes: at least, at most.
struct Arity {
  std::size_t least = 1;
  std::size_t most = 1;
};
Arity ArityOf(Op op) {
  switch (op) {
    case Op::kConstant:
    case Op::kRead:
      return {0, 0};
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kMin:
    case Op::kMax:
      return {1, SIZE_MAX};
    case Op::kSubtract:
    case Op::kDivide:
      return {2, 2};
    default:
      return {1, 1};
  }
}

// A leaf, with what it needs looked up once.
struct Leaf {
  TreeRef ref = 0;
  NodeId node = 0;
  std::uint32_t body = 0;             // leaves with one number run together
  std::vector<TreeRef> loops;         // round it, outermost first
  std::vector<TreeRef> reduced;       // those it reduces over
  std::vector<OperandSource> sources;
};

// Where the value of a node with a leaf is held.
struct Held {
  std::optional<BufferId> buffer;  // none: only inside its body
  std::optional<TreeRef> scope;    // none: held whole
};

class Planner {
 public:
  Planner(const LoopTree& tree, const PlanLimits& limits)
      : tree_(tree), program_(tree.program()), limits_(limits) {}

  std::expected<KernelPlan, Failure> Plan() {
    LF_TRY_VOID(CollectLeaves());
    LF_TRY_VOID(AddTensors());
    LF_TRY_VOID(AddIntermediates());
    LF_TRY_VOID(CheckFootprint());
    for (const looptree::Dim& dim : program_.dims) plan_.dim_sizes.push_back(dim.size);
    AddLoops();
    LF_TRY_VOID(CheckUnrolling());
    LF_TRY(plan_.steps, StepsUnder(std::nullopt));
    return std::move(plan_);
  }

 private:
  std::expected<void, Failure> CollectLeaves();
  std::expected<void, Failure> CheckOperation(const Leaf& leaf) const;
  std::expected<std::vector<OperandSource>, Failure> SourcesOf(NodeId node) const;
  std::expected<void, Failure> AddTensors();
  std::expected<void, Failure> AddIntermediates();
  std::expected<void, Failure> CheckFootprint();
  void AddLoops();
  std::expected<void, Failure> CheckUnrolling() const;
  std::expected<std::vector<Step>, Failure> StepsUnder(std::optional<TreeRef> parent);
  std::expected<Statement, Failure> StatementOf(const Leaf& leaf);
  std::expected<Operand, Failure> OperandOf(const Leaf& leaf, const OperandSource& source);
  std::expected<Access, Failure> AccessTo(const Leaf& leaf, BufferId buffer,
                                          std::optional<TreeRef> scope, const AccessMap& map) const;
  Step FillOf(const Leaf& leaf, const Statement& statement);
  std::expected<BufferId, Failure> AddBuffer(BufferSpec::Role role, NodeId node, Extents extents);

  bool AtOrAbove(TreeRef loop, std::optional<TreeRef> scope) const {
    return scope.has_value() && loop <= *scope && *scope < tree_.nodes()[loop].end;
  }
  std::optional<TreeRef> CommonScope(const std::vector<TreeRef>& a,
                                     const std::vector<TreeRef>& b) const;
  LoopId LoopIdOf(TreeRef ref) const { return loop_ids_.at(ref); }

  const LoopTree& tree_;
  const Program& program_;
  const PlanLimits limits_;
  KernelPlan plan_;
  std::map<NodeId, Leaf> leaves_;
  std::map<NodeId, BufferId> tensors_;  // of reads and writes
  std::map<NodeId, Held> held_;         // of nodes with a leaf
  std::map<TreeRef, LoopId> loop_ids_;
  std::map<LoopId, std::vector<Step>> fills_;             // not yet attached to their loop
  std::map<NodeId, std::uint32_t> statements_of_body_;    // of the body being made
};

std::expected<void, Failure> Planner::CollectLeaves() {
  const std::span<const TreeNode> nodes = tree_.nodes();
  std::uint32_t body = 0;
  std::optional<TreeRef> previous;  // the leaf before, if the body may go on after it
  for (TreeRef ref = 0; ref < nodes.size(); ++ref) {
    if (nodes[ref].kind != TreeNode::Kind::kOperation) continue;
    Leaf leaf{.ref = ref, .node = nodes[ref].node, .body = 0, .loops = {}, .reduced = {},
              .sources = {}};
    for (TreeRef up = nodes[ref].parent; up != kNoParent; up = nodes[up].parent) {
      leaf.loops.insert(leaf.loops.begin(), up);
    }
    const std::vector<DimId> reduced_dims = program_.ReducedDims(leaf.node);
    for (TreeRef loop : leaf.loops) {
      if (std::ranges::find(reduced_dims, nodes[loop].dim) != reduced_dims.end()) {
        leaf.reduced.push_back(loop);
      }
    }
    const bool goes_on =
        previous == ref - 1 && ref > 0 && nodes[*previous].parent == nodes[ref].parent;
    leaf.body = goes_on ? body : ++body;
    previous = leaf.reduced.empty() ? std::optional<TreeRef>(ref) : std::nullopt;
    LF_TRY_VOID(CheckOperation(leaf));
    LF_TRY(leaf.sources, SourcesOf(leaf.node));
    leaves_.emplace(leaf.node, std::move(leaf));
  }
  return {};
}

std::expected<void, Failure> Planner::CheckOperation(const Leaf& leaf) const {
  const Node& node = program_.nodes[leaf.node];
  const Arity arity = ArityOf(node.op);
  if (node.inputs.size() < arity.least || node.inputs.size() > arity.most) {
    return Fails(FailureCode::kUnsupported,
                 fmt::format("%{} ({}) cannot have {} inputs", leaf.node,
                             looptree::OpName(node.op), node.inputs.size()));
  }
  if (program_.IsReduction(leaf.node) && !CanReduce(node.op)) {
    return Fails(FailureCode::kUnsupported,
                 fmt::format("%{} ({}) lacks dimensions of its input, but only add, multiply, min "
                             "and max reduce",
                             leaf.node, looptree::OpName(node.op)));
  }
  return {};
}

std::expected<std::vector<OperandSource>, Failure> Planner::SourcesOf(NodeId id) const {
  const Node& node = program_.nodes[id];
  std::vector<OperandSource> sources;
  if (node.op == Op::kConstant) {
    sources.emplace_back(FoldedConstant{node.constant});
  } else if (node.op == Op::kRead) {
    AccessMap whole{.stored = id, .indices = {}};
    for (DimId dim : node.dims) whole.indices.push_back({.constant = 0, .terms = {{dim, 1}}});
    sources.emplace_back(std::move(whole));
  } else if (node.op == Op::kView) {
    LF_TRY(OperandSource source, ResolveViewInput(tree_, id));
    sources.push_back(std::move(source));
  } else {
    for (NodeId input : node.inputs) {
      LF_TRY(OperandSource source, ResolveOperand(tree_, input));
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

std::expected<BufferId, Failure> Planner::AddBuffer(BufferSpec::Role role, NodeId node,
                                                    Extents extents) {
  CheckedInteger count = 1;
  for (std::int64_t extent : extents) count = count * CheckedInteger(extent);
  const CheckedInteger bytes = count * CheckedInteger(sizeof(float));
  if (bytes.overflowed()) {
    return Fails(FailureCode::kLimitFootprint,
                 fmt::format("%{} alone has more elements than can be counted", node));
  }
  plan_.buffers.push_back({.role = role,
                           .node = node,
                           .extents = std::move(extents),
                           .element_count = count.value(),
                           .scratch_offset = 0});
  return static_cast<BufferId>(plan_.buffers.size() - 1);
}

std::expected<void, Failure> Planner::AddTensors() {
  const auto add = [&](BufferSpec::Role role, NodeId node) -> std::expected<void, Failure> {
    if (tensors_.contains(node)) {
      return Fails(FailureCode::kUnsupported, fmt::format("%{} is passed twice", node));
    }
    Extents extents;
    for (DimId dim : program_.nodes[node].dims) extents.push_back(program_.dims[dim].size);
    LF_TRY(tensors_[node], AddBuffer(role, node, std::move(extents)));
    return {};
  };
  for (NodeId node : program_.inputs) LF_TRY_VOID(add(BufferSpec::Role::kInput, node));
  for (NodeId node : program_.outputs) {
    if (!leaves_.contains(node)) {
      return Fails(FailureCode::kUnsupported, fmt::format("output %{} has no loops", node));
    }
    LF_TRY_VOID(add(BufferSpec::Role::kOutput, node));
  }
  return {};
}

std::optional<TreeRef> Planner::CommonScope(const std::vector<TreeRef>& a,
                                            const std::vector<TreeRef>& b) const {
  std::optional<TreeRef> scope;
  for (std::size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i) scope = a[i];
  return scope;
}

std::expected<void, Failure> Planner::AddIntermediates() {
  std::map<NodeId, std::vector<const Leaf*>> readers;
  for (const auto& [node, leaf] : leaves_) {
    for (const OperandSource& source : leaf.sources) {
      const auto* map = std::get_if<AccessMap>(&source);
      // A read's own leaf reads the tensor, not what it makes.
      if (map != nullptr && map->stored != node) readers[map->stored].push_back(&leaf);
    }
  }
  for (const auto& [node, leaf] : leaves_) {
    Held& held = held_[node];
    if (program_.nodes[node].op != Op::kRead && tensors_.contains(node)) {
      held = {.buffer = tensors_.at(node), .scope = std::nullopt};
      continue;
    }
    // A value that nobody reads is stored all the same: its work was asked for and is counted.
    bool stored = !leaf.reduced.empty() || readers[node].empty();
    held.scope = leaf.loops.empty() ? std::nullopt : std::optional(leaf.loops.back());
    std::vector<TreeRef> around = leaf.loops;
    for (const Leaf* reader : readers[node]) {
      stored = stored || reader->body != leaf.body;
      held.scope = CommonScope(around, reader->loops);
      std::erase_if(around, [&](TreeRef loop) { return !AtOrAbove(loop, held.scope); });
    }
    if (!stored) continue;
    Extents extents;
    for (DimId dim : program_.nodes[node].dims) {
      std::int64_t extent = program_.dims[dim].size;
      for (TreeRef loop : leaf.loops) {
        if (tree_.nodes()[loop].dim == dim && AtOrAbove(loop, held.scope)) {
          extent = tree_.InnerExtent(loop);
        }
      }
      extents.push_back(extent);
    }
    LF_TRY(held.buffer, AddBuffer(BufferSpec::Role::kScratch, node, std::move(extents)));
  }
  return {};
}

std::expected<void, Failure> Planner::CheckFootprint() {
  CheckedInteger total = 0;
  CheckedInteger scratch = 0;
  for (PlanBuffer& buffer : plan_.buffers) {
    const CheckedInteger bytes = CheckedInteger(buffer.element_count) * CheckedInteger(4);
    total = total + bytes;
    if (buffer.role != BufferSpec::Role::kScratch) continue;
    buffer.scratch_offset = scratch.value();
    const std::int64_t lines = (buffer.element_count * 4 + kScratchAlignment - 1) /
                               kScratchAlignment;
    scratch = scratch + CheckedInteger(lines) * CheckedInteger(kScratchAlignment);
  }
  total = total + scratch;
  if (total.overflowed() || static_cast<std::uint64_t>(total.value()) > limits_.footprint_bytes) {
    return Fails(FailureCode::kLimitFootprint,
                 total.overflowed()
                     ? std::string("the tensors and intermediates do not fit any memory")
                     : fmt::format("the tensors and intermediates need {} bytes; {} are allowed",
                                   total.value(), limits_.footprint_bytes));
  }
  plan_.scratch_bytes = static_cast<std::uint64_t>(scratch.value());
  return {};
}

// The extents that a loop's inner loops of the same dim can meet.
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
                  .step = tree_.InnerExtent(ref),
                  .extents = {program_.dims[nodes[ref].dim].size},
                  .annotation = nodes[ref].annotation};
    LF_CHECK(loop.step >= 1, "L{} covers {} elements", ref, loop.step);
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

std::expected<void, Failure> Planner::CheckUnrolling() const {
  CheckedInteger bodies = 0;
  for (const auto& [node, leaf] : leaves_) {
    CheckedInteger copies = 1;
    for (TreeRef ref : leaf.loops) {
      const PlanLoop& loop = plan_.loops[LoopIdOf(ref)];
      if (loop.annotation != Annotation::kUnroll) continue;
      copies = copies * CheckedInteger((loop.extents.front() + loop.step - 1) / loop.step);
    }
    // An operation that is not under an unrolled loop costs nothing.
    if (copies.overflowed() || copies.value() > 1) bodies = bodies + copies;
  }
  if (bodies.overflowed() || static_cast<std::uint64_t>(bodies.value()) > limits_.unrolled_bodies) {
    return Fails(FailureCode::kLimitUnroll,
                 fmt::format("the unrolled loops hold {} copies of operations; {} are allowed",
                             bodies.overflowed() ? "countless" : std::to_string(bodies.value()),
                             limits_.unrolled_bodies));
  }
  return {};
}

std::expected<std::vector<Step>, Failure> Planner::StepsUnder(std::optional<TreeRef> parent) {
  std::vector<Step> steps;
  std::optional<std::uint32_t> open_body;
  for (TreeRef child : tree_.Children(parent)) {
    const TreeNode& node = tree_.nodes()[child];
    if (node.kind == TreeNode::Kind::kLoop) {
      open_body.reset();
      LoopStep loop{.loop = LoopIdOf(child), .prepare = {}, .steps = {}};
      LF_TRY(loop.steps, StepsUnder(child));
      loop.prepare = std::exchange(fills_[loop.loop], {});
      steps.push_back({std::move(loop)});
      continue;
    }
    const Leaf& leaf = leaves_.at(node.node);
    if (open_body != leaf.body) {
      open_body = leaf.body;
      statements_of_body_.clear();
      steps.push_back({Body{}});
    }
    LF_TRY(Statement statement, StatementOf(leaf));
    if (!leaf.reduced.empty()) {
      fills_[statement.reduced.front()].push_back(FillOf(leaf, statement));
    }
    Body& body = std::get<Body>(steps.back().what);
    statements_of_body_[leaf.node] = static_cast<std::uint32_t>(body.statements.size());
    body.statements.push_back(std::move(statement));
  }
  return steps;
}

std::expected<Statement, Failure> Planner::StatementOf(const Leaf& leaf) {
  const Op op = program_.nodes[leaf.node].op;
  Statement statement{.node = leaf.node, .op = op, .operands = {}, .target = {}, .reduced = {}};
  for (const OperandSource& source : leaf.sources) {
    LF_TRY(Operand operand, OperandOf(leaf, source));
    statement.operands.push_back(std::move(operand));
  }
  const bool passes_on = op == Op::kRead || op == Op::kView || op == Op::kWrite ||
                         op == Op::kConstant || op == Op::kName ||
                         // One element reduced over dims of size 1 that have no loops.
                         (CanReduce(op) && leaf.reduced.empty() && leaf.sources.size() == 1);
  if (passes_on) statement.op = Op::kCopy;
  for (TreeRef loop : leaf.reduced) statement.reduced.push_back(LoopIdOf(loop));
  const Held& held = held_.at(leaf.node);
  if (held.buffer.has_value()) {
    AccessMap whole{.stored = leaf.node, .indices = {}};
    for (DimId dim : program_.nodes[leaf.node].dims) {
      whole.indices.push_back({.constant = 0, .terms = {{dim, 1}}});
    }
    LF_TRY(statement.target, AccessTo(leaf, *held.buffer, held.scope, whole));
  }
  return statement;
}

std::expected<Operand, Failure> Planner::OperandOf(const Leaf& leaf, const OperandSource& source) {
  if (const auto* constant = std::get_if<FoldedConstant>(&source)) return Literal{constant->value};
  const AccessMap& map = std::get<AccessMap>(source);
  const auto held = held_.find(map.stored);
  const bool from_tensor = held == held_.end() || map.stored == leaf.node;
  if (from_tensor) {
    const auto tensor = tensors_.find(map.stored);
    if (tensor == tensors_.end()) {
      return Fails(FailureCode::kUnsupported,
                   fmt::format("%{} reads a tensor that is no input", map.stored));
    }
    LF_TRY(Access access, AccessTo(leaf, tensor->second, std::nullopt, map));
    return access;
  }
  const Leaf& producer = leaves_.at(map.stored);
  if (producer.body != leaf.body) {
    LF_CHECK(held->second.buffer.has_value(), "%{} is read outside its body", map.stored);
    LF_TRY(Access access, AccessTo(leaf, *held->second.buffer, held->second.scope, map));
    return access;
  }
  const Node& stored = program_.nodes[map.stored];
  for (std::size_t i = 0; i < map.indices.size(); ++i) {
    const DimId dim = stored.dims[i];
    const bool looped = std::ranges::any_of(
        producer.loops, [&](TreeRef loop) { return tree_.nodes()[loop].dim == dim; });
    if (looped && !map.indices[i].IsIdentityOf(dim)) {
      return Fails(FailureCode::kUnsupported,
                   fmt::format("%{} needs elements of %{} that are not there yet: they share the "
                               "loops over '{}'",
                               leaf.node, map.stored, program_.dims[dim].name));
    }
  }
  return ValueOf{statements_of_body_.at(map.stored)};
}

std::expected<Access, Failure> Planner::AccessTo(const Leaf& leaf, BufferId id,
                                                 std::optional<TreeRef> scope,
                                                 const AccessMap& map) const {
  const PlanBuffer& buffer = plan_.buffers[id];
  const Node& stored = program_.nodes[map.stored];
  std::map<TreeRef, std::int64_t> strides;  // by loop; refs ascend from the outermost inwards
  Access access{.buffer = id, .constant = 0, .terms = {}};
  std::int64_t stride = 1;  // fits: the buffer's size was checked, and every index stays inside
  for (std::size_t i = stored.dims.size(); i-- > 0;) {
    const DimId dim = stored.dims[i];
    const AffineIndex& index = map.indices[i];
    const bool identity = index.IsIdentityOf(dim);
    const bool cut_by_scope = std::ranges::any_of(leaf.loops, [&](TreeRef loop) {
      return tree_.nodes()[loop].dim == dim && AtOrAbove(loop, scope);
    });
    if (cut_by_scope && !identity) {
      return Fails(FailureCode::kUnsupported,
                   fmt::format("%{} needs elements of %{} that are not there yet: they share a "
                               "loop over '{}'",
                               leaf.node, map.stored, program_.dims[dim].name));
    }
    access.constant += index.constant * stride;
    for (const AffineTerm& term : index.terms) {
      for (TreeRef loop : leaf.loops) {
        if (tree_.nodes()[loop].dim != term.dim) continue;
        if (identity && AtOrAbove(loop, scope)) continue;
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
Step Planner::FillOf(const Leaf& leaf, const Statement& statement) {
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
  Step step{Body{{Statement{.node = leaf.node,
                            .op = Op::kCopy,
                            .operands = {Literal{ReductionIdentity(statement.op)}},
                            .target = std::move(filled),
                            .reduced = {}}}}};
  for (std::size_t i = loops.size(); i-- > 0;) {
    LoopStep around{.loop = loops[i], .prepare = {}, .steps = {}};
    around.steps.push_back(std::move(step));
    step = Step{std::move(around)};
  }
  return step;
}

}  // namespace

std::expected<KernelPlan, Failure> PlanKernel(const LoopTree& tree, const PlanLimits& limits) {
  return Planner(tree, limits).Plan();
}

}  // namespace loopfleet::worker
