#include "common/looptree/interpreter/access.h"

#include <algorithm>

namespace loopfleet::looptree {
namespace {

void AddTerm(std::vector<AffineTerm>& terms, AffineTerm term) {
  const auto same = std::find_if(terms.begin(), terms.end(),
                                 [&](const AffineTerm& other) { return other.dim == term.dim; });
  if (same == terms.end()) {
    terms.push_back(term);
  } else {
    same->coefficient += term.coefficient;
  }
}

}  // namespace

std::vector<ViewIndex> Composed(const Program& program, const std::vector<ViewIndex>& outer,
                                const std::vector<ViewIndex>& inner) {
  std::vector<ViewIndex> composed;
  for (const ViewIndex& index : outer) {
    ViewIndex result{index.input_dim, {}, index.constant};
    for (const AffineTerm& term : index.terms) {
      if (program.dims[term.dim].size == 1) continue;  // its index is always 0
      const auto map = std::find_if(inner.begin(), inner.end(), [&](const ViewIndex& candidate) {
        return candidate.input_dim == term.dim;
      });
      result.constant += term.coefficient * map->constant;
      for (const AffineTerm& below : map->terms) {
        if (program.dims[below.dim].size == 1) continue;
        AddTerm(result.terms, {below.dim, term.coefficient * below.coefficient});
      }
    }
    composed.push_back(std::move(result));
  }
  return composed;
}

Access AccessOf(const LoopTree& tree, NodeId operand) {
  return AccessOf(tree.program(), operand, [&](NodeId node) { return !tree.LeafOf(node); });
}

}  // namespace loopfleet::looptree
