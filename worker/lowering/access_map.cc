#include "worker/lowering/access_map.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

using looptree::AffineTerm;
using looptree::DimId;
using looptree::LoopTree;
using looptree::Node;
using looptree::NodeId;
using looptree::Op;
using looptree::Program;
using looptree::ViewIndex;

// One index for each of `dims`.
struct IndexMap {
  std::vector<DimId> dims;
  std::vector<AffineIndex> indices;

  const AffineIndex& Along(DimId dim) const {
    const auto at = std::ranges::find(dims, dim);
    LF_CHECK(at != dims.end(), "dim {} is not indexed", dim);
    return indices[static_cast<std::size_t>(at - dims.begin())];
  }
};

void AddTerm(AffineIndex& index, DimId dim, std::int64_t coefficient) {
  const auto at = std::ranges::find(index.terms, dim, &AffineTerm::dim);
  if (at == index.terms.end()) {
    index.terms.push_back({dim, coefficient});
  } else {
    at->coefficient += coefficient;
  }
}

// `outer`, which is over the dims of `inner`, as an index over what `inner` is over.
AffineIndex Compose(const Program& program, const ViewIndex& outer, const IndexMap& inner) {
  AffineIndex result{.constant = outer.constant, .terms = {}};
  for (const AffineTerm& term : outer.terms) {
    if (program.dims[term.dim].size == 1) continue;
    const AffineIndex& index = inner.Along(term.dim);
    result.constant += term.coefficient * index.constant;
    for (const AffineTerm& below : index.terms) {
      AddTerm(result, below.dim, term.coefficient * below.coefficient);
    }
  }
  std::erase_if(result.terms, [](const AffineTerm& term) { return term.coefficient == 0; });
  return result;
}

// From indices of the view's dims to indices of its input's.
IndexMap ThroughView(const Program& program, NodeId id, const IndexMap& of_view) {
  const Node& view = program.nodes[id];
  IndexMap result{.dims = program.nodes[view.inputs[0]].dims, .indices = {}};
  for (DimId dim : result.dims) {
    const auto at = std::ranges::find(view.view, dim, &ViewIndex::input_dim);
    LF_CHECK(at != view.view.end(), "view %{} does not index dim {}", id, dim);
    result.indices.push_back(Compose(program, *at, of_view));
  }
  return result;
}

OperandSource Resolve(const LoopTree& tree, NodeId node, IndexMap map) {
  const Program& program = tree.program();
  while (!tree.LeafOf(node).has_value() && program.nodes[node].op != Op::kRead) {
    if (program.nodes[node].op == Op::kConstant)
      return FoldedConstant{program.nodes[node].constant};
    LF_CHECK(program.nodes[node].op == Op::kView, "%{} has no leaf", node);
    map = ThroughView(program, node, map);
    node = program.nodes[node].inputs[0];
  }
  return AccessMap{.stored = node, .indices = std::move(map.indices)};
}

IndexMap IdentityOf(const Program& program, NodeId node) {
  return {.dims = program.nodes[node].dims, .indices = WholeOf(program, node).indices};
}

}  // namespace

bool AffineIndex::IsIdentityOf(DimId dim) const {
  return constant == 0 && terms.size() == 1 && terms[0].dim == dim && terms[0].coefficient == 1;
}

AccessMap WholeOf(const Program& program, NodeId node) {
  AccessMap map{.stored = node, .indices = {}};
  for (DimId dim : program.nodes[node].dims) {
    map.indices.push_back({.constant = 0, .terms = {{dim, 1}}});
  }
  return map;
}

OperandSource ResolveOperand(const LoopTree& tree, NodeId node) {
  return Resolve(tree, node, IdentityOf(tree.program(), node));
}

OperandSource ResolveViewInput(const LoopTree& tree, NodeId view) {
  const Program& program = tree.program();
  return Resolve(tree, program.nodes[view].inputs[0],
                 ThroughView(program, view, IdentityOf(program, view)));
}

}  // namespace loopfleet::worker
