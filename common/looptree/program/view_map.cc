#include "common/looptree/program/view_map.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/looptree/program/checked_math.h"

namespace loopfleet::looptree {
namespace {

// sum of coefficient * (index along dim) over one common divisor, in checked arithmetic.
class Form {
 public:
  explicit Form(std::int64_t constant) : constant_(constant) {}

  bool ok() const { return ok_; }

  // Adds factor * (constant + terms) / divisor.
  void Add(const Program& program, std::int64_t factor, const ViewIndex& index) {
    const std::int64_t common = std::lcm(divisor_, index.divisor);
    if (common <= 0 || common > kMaxGuardedIndex) {
      ok_ = false;
      return;
    }
    Scale(common / divisor_);
    divisor_ = common;
    const std::int64_t scale = Times(factor, common / index.divisor);
    constant_ = Plus(constant_, Times(scale, index.constant));
    for (const AffineTerm& term : index.terms) {
      if (program.dims[term.dim].size == 1) continue;  // its index is always 0
      AddTerm({term.dim, Times(scale, term.coefficient)});
    }
  }

  // Gives the map, divided once more by `divisor`, in lowest terms.
  ViewIndex Finish(DimId input_dim, std::int64_t divisor) {
    ViewIndex index{input_dim, std::move(terms_), constant_, Times(divisor_, divisor)};
    if (index.divisor == 1) return index;
    std::erase_if(index.terms, [](const AffineTerm& term) { return term.coefficient == 0; });
    std::int64_t common = std::gcd(index.divisor, index.constant);
    for (const AffineTerm& term : index.terms) common = std::gcd(common, term.coefficient);
    index.divisor /= common;
    index.constant /= common;
    for (AffineTerm& term : index.terms) term.coefficient /= common;
    return index;
  }

 private:
  std::int64_t Times(std::int64_t a, std::int64_t b) {
    const auto product = CheckedMultiply(a, b);
    ok_ &= product.has_value();
    return product.value_or(1);
  }
  std::int64_t Plus(std::int64_t a, std::int64_t b) {
    const auto sum = CheckedAdd(a, b);
    ok_ &= sum.has_value();
    return sum.value_or(0);
  }
  void Scale(std::int64_t factor) {
    constant_ = Times(constant_, factor);
    for (AffineTerm& term : terms_) term.coefficient = Times(term.coefficient, factor);
  }
  void AddTerm(AffineTerm term) {
    const auto same = std::ranges::find(terms_, term.dim, &AffineTerm::dim);
    if (same == terms_.end()) {
      terms_.push_back(term);
    } else {
      same->coefficient = Plus(same->coefficient, term.coefficient);
    }
  }

  std::vector<AffineTerm> terms_;
  std::int64_t constant_ = 0;
  std::int64_t divisor_ = 1;
  bool ok_ = true;
};

struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Of constant + terms.
std::optional<Range> RangeOf(const Program& program, const ViewIndex& index) {
  Range range{index.constant, index.constant};
  for (const AffineTerm& term : index.terms) {
    std::int64_t& end = term.coefficient < 0 ? range.low : range.high;
    const auto moved = CheckedMultiplyAdd(program.dims[term.dim].size - 1, term.coefficient, end);
    if (!moved) return std::nullopt;
    end = *moved;
  }
  return range;
}

bool Fits(const Program& program, const ViewIndex& index) {
  const auto range = RangeOf(program, index);
  return range && range->low >= -kMaxGuardedIndex && range->high <= kMaxGuardedIndex &&
         index.divisor <= kMaxGuardedIndex;
}

}  // namespace

ViewMap IdentityMap(const Program& program, NodeId node) {
  ViewMap map;
  for (const DimId dim : program.nodes[node].dims) map.index.push_back({dim, {{dim, 1}}, 0});
  return map;
}

std::optional<ViewMap> ThroughView(const Program& program, NodeId view, const ViewMap& map) {
  const Node& node = program.nodes[view];
  ViewMap composed;
  composed.guards = map.guards;
  for (const DimId input_dim : program.nodes[node.inputs[0]].dims) {
    const auto outer = std::ranges::find(node.view, input_dim, &ViewIndex::input_dim);
    LF_CHECK(outer != node.view.end(), "view {} lacks an index", view);
    Form form(outer->constant);
    for (const AffineTerm& term : outer->terms) {
      if (program.dims[term.dim].size == 1) continue;  // its index is always 0
      form.Add(program, term.coefficient,
               *std::ranges::find(map.index, term.dim, &ViewIndex::input_dim));
    }
    ViewIndex result = form.Finish(input_dim, outer->divisor);
    if (!form.ok()) return std::nullopt;
    const bool guarded = outer->guarded && NeedsGuard(program, *outer);
    if (guarded || result.divisor != 1 || !composed.guards.empty()) {
      if (!Fits(program, result)) return std::nullopt;
    }
    if (guarded) {
      composed.guards.push_back({.dim = input_dim,
                                 .terms = result.terms,
                                 .constant = result.constant,
                                 .divisor = result.divisor,
                                 .size = program.dims[input_dim].size,
                                 .outside = node.outside});
    }
    composed.index.push_back(std::move(result));
  }
  return composed;
}

bool NeedsGuard(const Program& program, const ViewIndex& index) {
  if (index.divisor != 1) return true;
  const auto range = RangeOf(program, index);
  return !range || range->low < 0 || range->high >= program.dims[index.input_dim].size;
}

bool NeedsGuard(const Program& program, const Node& view) {
  return std::ranges::any_of(view.view, [&](const ViewIndex& index) {
    return index.guarded && NeedsGuard(program, index);
  });
}

std::optional<Program> Plain(const Program& program) {
  std::optional<Program> plain;
  const auto changed = [&](NodeId id) -> Node& {
    if (!plain) plain = program;
    return plain->nodes[id];
  };
  const auto as_float = [](double number) {
    return static_cast<double>(static_cast<float>(number));
  };
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    const Node& node = program.nodes[id];
    if (node.op == Op::kConstant && as_float(node.constant) != node.constant) {
      changed(id).constant = as_float(node.constant);
    }
    if (node.op != Op::kView) continue;
    for (std::size_t i = 0; i < node.view.size(); ++i) {
      if (node.view[i].guarded && !NeedsGuard(program, node.view[i])) {
        changed(id).view[i].guarded = false;
      }
    }
    const double outside = NeedsGuard(program, node) ? as_float(node.outside) : 0;
    if (node.outside != outside) changed(id).outside = outside;
  }
  return plain;
}

}  // namespace loopfleet::looptree
