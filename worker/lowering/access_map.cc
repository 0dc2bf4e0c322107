#include "worker/lowering/access_map.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/looptree/interpreter/access.h"

namespace loopfleet::worker {
namespace {

using looptree::Access;
using looptree::AffineTerm;
using looptree::DimId;
using looptree::LoopTree;
using looptree::NodeId;
using looptree::Op;
using looptree::Program;
using looptree::ViewIndex;

AccessMap MapOf(Access access) {
  AccessMap map{.stored = access.source, .indices = {}, .guards = std::move(access.guards)};
  const auto is_zero = [](const AffineTerm& term) { return term.coefficient == 0; };
  for (ViewIndex& index : access.index) {
    std::erase_if(index.terms, is_zero);
    map.indices.push_back(
        {.constant = index.constant, .terms = std::move(index.terms), .divisor = index.divisor});
  }
  for (looptree::IndexGuard& guard : map.guards) std::erase_if(guard.terms, is_zero);
  return map;
}

OperandSource SourceOf(const LoopTree& tree, Access access) {
  const NodeId stored = access.source;
  const looptree::Node& node = tree.program().nodes[stored];
  if (!tree.LeafOf(stored).has_value() && node.op != Op::kRead) {
    LF_CHECK(node.op == Op::kConstant, "%{} has no leaf", stored);
    return FoldedConstant{node.constant, std::move(access.guards)};
  }
  return MapOf(std::move(access));
}

}  // namespace

bool AffineIndex::IsIdentityOf(DimId dim) const {
  return constant == 0 && divisor == 1 && terms.size() == 1 && terms[0].dim == dim &&
         terms[0].coefficient == 1;
}

AccessMap WholeOf(const Program& program, NodeId node) {
  return MapOf(looptree::AccessOf(program, node, [](NodeId) { return false; }));
}

OperandSource ResolveOperand(const LoopTree& tree, NodeId node) {
  return SourceOf(tree, looptree::AccessOf(tree, node));
}

OperandSource ResolveViewInput(const LoopTree& tree, NodeId view) {
  return SourceOf(tree, looptree::AccessOf(tree.program(), view, [&](NodeId node) {
                    return node == view || !tree.LeafOf(node).has_value();
                  }));
}

}  // namespace loopfleet::worker
