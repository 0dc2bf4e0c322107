#include "common/looptree/interpreter/interpret.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "common/base/check.h"
#include "common/looptree/interpreter/access.h"
#include "common/looptree/interpreter/arithmetic.h"
#include "common/looptree/program/dim_set.h"
#include "common/looptree/program/program_facts.h"

namespace loopfleet::looptree {
namespace {

class Interpreter {
 public:
  Interpreter(const LoopTree& tree, std::span<const Tensor> inputs)
      : tree_(tree),
        program_(tree.program()),
        buffers_(program_.nodes.size()),
        plans_(program_.nodes.size()),
        scoped_(tree.nodes().size()),
        first_piece_(tree.nodes().size(), true) {
    LF_CHECK(inputs.size() == program_.inputs.size(), "{} inputs for {}", inputs.size(),
             program_.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs_[program_.inputs[i]] = inputs[i];
    for (NodeId id = 0; id < program_.nodes.size(); ++id) PlanBuffer(id, inputs);
    for (NodeId id = 0; id < program_.nodes.size(); ++id) PlanLeaf(id);
  }

  std::vector<Tensor> Run() {
    for (DimId dim = 0; dim < program_.dims.size(); ++dim) range_[dim] = program_.dims[dim].size;
    for (NodeId id = 0; id < program_.nodes.size(); ++id) {
      if (tree_.LeafOf(id) && !tree_.ScopeOf(id)) EnterScope(id);
    }
    RunNodes(0, static_cast<TreeRef>(tree_.nodes().size()));
    std::vector<Tensor> outputs;
    for (const NodeId id : program_.outputs) outputs.push_back(std::move(buffers_[id].data));
    return outputs;
  }

 private:
  struct Buffer {
    Tensor data;
    std::vector<std::int64_t> strides;          // per dim of the node
    std::array<std::int64_t, kMaxDims> base{};  // offsets at entry of its scope
  };
  struct Plan {
    std::vector<Access> operands;
    std::vector<TreeRef> run_once_in;  // foreign loops strictly inside the scope
  };

  void PlanBuffer(NodeId id, std::span<const Tensor> inputs) {
    const Node& node = program_.nodes[id];
    const bool has_leaf = tree_.LeafOf(id).has_value();
    if (!has_leaf && node.op != Op::kRead && node.op != Op::kConstant) return;
    Buffer& buffer = buffers_[id];
    std::int64_t size = 1;
    buffer.strides.resize(node.dims.size());
    for (std::size_t i = node.dims.size(); i-- > 0;) {
      buffer.strides[i] = size;
      const DimId dim = node.dims[i];
      size *= has_leaf ? tree_.BufferExtent(id, dim) : program_.dims[dim].size;
    }
    if (node.op == Op::kRead) {
      const auto at = std::find(program_.inputs.begin(), program_.inputs.end(), id);
      const Tensor& input = inputs[static_cast<std::size_t>(at - program_.inputs.begin())];
      LF_CHECK(static_cast<std::int64_t>(input.size()) == program_.ElementCount(id),
               "input of node {} has {} elements", id, input.size());
      if (!has_leaf) buffer.data = input;
    }
    if (!has_leaf && node.op == Op::kConstant) {
      buffer.data.assign(static_cast<std::size_t>(size), static_cast<float>(node.constant));
    }
    if (has_leaf) {
      // NaN exposes elements that are read before they are computed.
      buffer.data.assign(static_cast<std::size_t>(size), std::numeric_limits<float>::quiet_NaN());
      if (const auto scope = tree_.ScopeOf(id)) scoped_[*scope].push_back(id);
    }
  }

  void PlanLeaf(NodeId id) {
    const auto leaf = tree_.LeafOf(id);
    if (!leaf) return;
    const Node& node = program_.nodes[id];
    if (node.op == Op::kView) {  // reads through its own map
      plans_[id].operands.push_back(
          AccessOf(program_, id, [&](NodeId view) { return view == id || !tree_.LeafOf(view); }));
    } else {
      for (const NodeId input : node.inputs) plans_[id].operands.push_back(AccessOf(tree_, input));
    }
    const auto scope = tree_.ScopeOf(id);
    const DimSet own = tree_.facts().nodes[id].iteration;
    for (TreeRef loop = tree_.nodes()[*leaf].parent; loop != kNoParent && loop != scope;
         loop = tree_.nodes()[loop].parent) {
      if (!own.Has(tree_.nodes()[loop].dim)) plans_[id].run_once_in.push_back(loop);
    }
  }

  void EnterScope(NodeId id) {
    Buffer& buffer = buffers_[id];
    buffer.base = offset_;
    if (program_.nodes[id].op == Op::kWrite) return;
    const bool reduces = !tree_.facts().nodes[id].reduced.empty();
    std::fill(
        buffer.data.begin(), buffer.data.end(),
        reduces ? Identity<float>(program_.nodes[id].op) : std::numeric_limits<float>::quiet_NaN());
  }

  void RunNodes(TreeRef begin, TreeRef end) {
    for (TreeRef ref = begin; ref < end; ref = tree_.nodes()[ref].end) {
      if (tree_.IsLoop(ref)) {
        RunLoop(ref);
      } else {
        RunLeaf(tree_.nodes()[ref].node);
      }
    }
  }

  void RunLoop(TreeRef ref) {
    const TreeNode& loop = tree_.nodes()[ref];
    const std::int64_t offset = offset_[loop.dim];
    const std::int64_t range = range_[loop.dim];
    for (std::int64_t piece = 0; piece < range; piece += loop.inner) {
      offset_[loop.dim] = offset + piece;
      range_[loop.dim] = std::min(loop.inner, range - piece);
      first_piece_[ref] = piece == 0;
      for (const NodeId id : scoped_[ref]) EnterScope(id);
      RunNodes(ref + 1, loop.end);
    }
    offset_[loop.dim] = offset;
    range_[loop.dim] = range;
  }

  void RunLeaf(NodeId id) {
    const Plan& plan = plans_[id];
    for (const TreeRef loop : plan.run_once_in) {
      if (!first_piece_[loop]) return;
    }
    const Node& node = program_.nodes[id];
    float value = 0;
    if (node.op == Op::kRead) {
      value = InputElement(id);
    } else if (node.op == Op::kConstant) {
      value = static_cast<float>(node.constant);
    } else if (node.op == Op::kSelect) {
      value =
          Select(Element(plan.operands[0]), Element(plan.operands[1]), Element(plan.operands[2]));
    } else {
      value = Unary(node.op, Element(plan.operands[0]));
      for (std::size_t i = 1; i < plan.operands.size(); ++i) {
        value = Binary(node.op, value, Element(plan.operands[i]));
      }
    }
    float& result = buffers_[id].data[ResultIndex(id)];
    const bool reduces = !tree_.facts().nodes[id].reduced.empty();
    result = reduces ? Binary(node.op, result, value) : value;
  }

  // A read with loops of its own copies from the input tensor.
  float InputElement(NodeId id) const {
    std::int64_t index = 0;
    for (const DimId dim : program_.nodes[id].dims) {
      index = index * program_.dims[dim].size + offset_[dim];
    }
    return inputs_.at(id)[static_cast<std::size_t>(index)];
  }

  std::int64_t Sum(std::int64_t constant, const std::vector<AffineTerm>& terms) const {
    for (const AffineTerm& term : terms) constant += term.coefficient * offset_[term.dim];
    return constant;
  }

  float Element(const Access& access) const {
    for (const IndexGuard& guard : access.guards) {
      const std::int64_t along = Sum(guard.constant, guard.terms);
      if (along < 0 || along % guard.divisor != 0 || along / guard.divisor >= guard.size) {
        return static_cast<float>(guard.outside);
      }
    }
    const Buffer& buffer = buffers_[access.source];
    std::int64_t index = 0;
    for (std::size_t i = 0; i < access.index.size(); ++i) {
      const ViewIndex& map = access.index[i];
      const std::int64_t along = Sum(map.constant, map.terms) / map.divisor;
      index += (along - buffer.base[map.input_dim]) * buffer.strides[i];
    }
    return buffer.data.at(static_cast<std::size_t>(index));
  }

  std::size_t ResultIndex(NodeId id) const {
    const Buffer& buffer = buffers_[id];
    const auto& dims = program_.nodes[id].dims;
    std::int64_t index = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      index += (offset_[dims[i]] - buffer.base[dims[i]]) * buffer.strides[i];
    }
    return static_cast<std::size_t>(index);
  }

  const LoopTree& tree_;
  const Program& program_;
  std::map<NodeId, std::span<const float>> inputs_;
  std::vector<Buffer> buffers_;              // per program node
  std::vector<Plan> plans_;                  // per program node
  std::vector<std::vector<NodeId>> scoped_;  // per tree node: nodes whose scope this loop is
  std::vector<bool> first_piece_;            // per tree node: the loop is in its first piece
  std::array<std::int64_t, kMaxDims> offset_{};
  std::array<std::int64_t, kMaxDims> range_{};
};

}  // namespace

std::vector<Tensor> Interpret(const LoopTree& tree, std::span<const Tensor> inputs) {
  return Interpreter(tree, inputs).Run();
}

}  // namespace loopfleet::looptree
