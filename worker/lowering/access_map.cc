#include "worker/lowering/access_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/result.h"
#include "worker/lowering/checked_integer.h"

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

template <class... Args>
std::unexpected<Failure> Unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Failure{.code = FailureCode::kUnsupported,
                                 .message = fmt::format(format, std::forward<Args>(args)...)});
}

AffineIndex Identity(DimId dim) { return {.constant = 0, .terms = {{dim, 1}}}; }

std::vector<AffineIndex> IdentityMap(const Node& node) {
  std::vector<AffineIndex> indices;
  indices.reserve(node.dims.size());
  for (DimId dim : node.dims) indices.push_back(Identity(dim));
  return indices;
}

const AffineIndex* IndexAlong(const std::vector<DimId>& dims,
                              const std::vector<AffineIndex>& indices, DimId dim) {
  const auto at = std::ranges::find(dims, dim);
  return at == dims.end() ? nullptr : &indices[static_cast<std::size_t>(at - dims.begin())];
}

// The index of the view's input along `dim`, in the view's own dims: what the view says, or the
// dimension itself where it says nothing.
std::optional<AffineIndex> ViewIndexAlong(const Node& view, DimId dim) {
  for (const ViewIndex& index : view.view) {
    if (index.input_dim == dim) return AffineIndex{index.constant, index.terms};
  }
  if (std::ranges::find(view.dims, dim) == view.dims.end()) return std::nullopt;
  return Identity(dim);
}

// True if every value of `index`, over the whole of its dims, lies in [0, size).
bool StaysWithin(const Program& program, const AffineIndex& index, std::int64_t size) {
  CheckedInteger low = index.constant;
  CheckedInteger high = index.constant;
  for (const AffineTerm& term : index.terms) {
    const CheckedInteger reach =
        CheckedInteger(term.coefficient) * CheckedInteger(program.dims[term.dim].size - 1);
    (term.coefficient < 0 ? low : high) = (term.coefficient < 0 ? low : high) + reach;
  }
  return !low.overflowed() && !high.overflowed() && low.value() >= 0 && high.value() < size;
}

// outer with each of its dims replaced by what `indices` says; nullopt: does not fit 64 bits.
std::optional<AffineIndex> Substitute(const AffineIndex& outer, const std::vector<DimId>& dims,
                                      const std::vector<AffineIndex>& indices) {
  AffineIndex result{.constant = outer.constant, .terms = {}};
  for (const AffineTerm& term : outer.terms) {
    const AffineIndex* inner = IndexAlong(dims, indices, term.dim);
    if (inner == nullptr) return std::nullopt;
    const CheckedInteger constant =
        CheckedInteger(result.constant) +
        CheckedInteger(term.coefficient) * CheckedInteger(inner->constant);
    if (constant.overflowed()) return std::nullopt;
    result.constant = constant.value();
    for (const AffineTerm& inner_term : inner->terms) {
      const CheckedInteger product =
          CheckedInteger(term.coefficient) * CheckedInteger(inner_term.coefficient);
      auto at = std::ranges::find(result.terms, inner_term.dim, &AffineTerm::dim);
      const CheckedInteger sum =
          at == result.terms.end() ? product : product + CheckedInteger(at->coefficient);
      if (sum.overflowed()) return std::nullopt;
      if (at == result.terms.end()) {
        result.terms.push_back({inner_term.dim, sum.value()});
      } else {
        at->coefficient = sum.value();
      }
    }
  }
  std::erase_if(result.terms, [](const AffineTerm& term) { return term.coefficient == 0; });
  return result;
}

// Steps from the dims of `view` to those of its input.
std::expected<std::vector<AffineIndex>, Failure> ThroughView(
    const Program& program, NodeId view_id, const std::vector<AffineIndex>& indices) {
  const Node& view = program.nodes[view_id];
  if (view.inputs.size() != 1) return Unsupported("view %{} needs exactly one input", view_id);
  std::vector<AffineIndex> result;
  for (DimId dim : program.nodes[view.inputs[0]].dims) {
    const std::optional<AffineIndex> own = ViewIndexAlong(view, dim);
    if (!own.has_value()) {
      return Unsupported("view %{} does not say how '{}' of %{} is indexed", view_id,
                         program.dims[dim].name, view.inputs[0]);
    }
    const std::optional<AffineIndex> through = Substitute(*own, view.dims, indices);
    if (!through.has_value() || !StaysWithin(program, *own, program.dims[dim].size)) {
      return Unsupported("view %{} reaches outside '{}' of %{}, which has {} elements", view_id,
                         program.dims[dim].name, view.inputs[0], program.dims[dim].size);
    }
    result.push_back(*through);
  }
  return result;
}

std::expected<OperandSource, Failure> Resolve(const LoopTree& tree, NodeId node,
                                              std::vector<AffineIndex> indices) {
  const Program& program = tree.program();
  while (!tree.LeafOf(node).has_value()) {
    const Op op = program.nodes[node].op;
    if (op == Op::kRead) break;
    if (op == Op::kConstant) return FoldedConstant{program.nodes[node].constant};
    if (op != Op::kView) {
      return Unsupported("%{} ({}) has no loops, but only reads, views and constants may go without",
                         node, looptree::OpName(op));
    }
    LF_TRY(indices, ThroughView(program, node, indices));
    node = program.nodes[node].inputs[0];
  }
  return AccessMap{.stored = node, .indices = std::move(indices)};
}

}  // namespace

bool AffineIndex::IsIdentityOf(DimId dim) const {
  return constant == 0 && terms.size() == 1 && terms[0].dim == dim && terms[0].coefficient == 1;
}

std::expected<OperandSource, Failure> ResolveOperand(const LoopTree& tree, NodeId node) {
  return Resolve(tree, node, IdentityMap(tree.program().nodes[node]));
}

std::expected<OperandSource, Failure> ResolveViewInput(const LoopTree& tree, NodeId view) {
  const Node& node = tree.program().nodes[view];
  LF_CHECK(node.op == Op::kView, "%{} is no view", view);
  LF_TRY(std::vector<AffineIndex> indices,
         ThroughView(tree.program(), view, IdentityMap(node)));
  return Resolve(tree, node.inputs[0], std::move(indices));
}

}  // namespace loopfleet::worker
