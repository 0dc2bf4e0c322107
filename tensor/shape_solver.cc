#include "tensor/shape_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "common/looptree/program/checked_math.h"
#include "tensor/tensor_error.h"

namespace loopfleet::tensor {
namespace {

using Kind = TensorError::Kind;

// Rounded towards minus infinity; `b` > 0.
std::int64_t FloorDivide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// sum + coefficient * size, for `expr` of `node`. Not -2^63 either, which has no negative.
std::int64_t Plus(std::int64_t sum, std::int64_t coefficient, std::int64_t size, const Expr& expr,
                  const Node& node) {
  const auto more = looptree::CheckedMultiplyAdd(coefficient, size, sum);
  if (more && *more != std::numeric_limits<std::int64_t>::min()) return *more;
  throw TensorError(Kind::kSizeConflict,
                    fmt::format("{} in {} is more than 2^63", expr.ToString(), Describe(node)));
}

}  // namespace

int AxisOf(const std::vector<Symbol>& symbols, const Symbol& symbol) {
  const auto found = std::ranges::find(symbols, symbol);
  return found == symbols.end() ? -1 : static_cast<int>(found - symbols.begin());
}

ShapeSolver::ShapeSolver(const std::vector<Node*>& nodes) : nodes_(nodes) {
  Slot count = 0;
  for (const Node* const node : nodes) {
    offsets_.push_back(count);
    count += static_cast<Slot>(node->symbols.size());
  }
  classes_.resize(count);
  for (Slot slot = 0; slot < count; ++slot) classes_[slot].parent = slot;
  for (const Node* const node : nodes) UniteOf(*node);
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (const Node* const node : nodes) is_new |= SolveEquations(*node);
    if (!is_new) is_new = SolveBySymbol();
  }
}

ShapeSolver::Slot ShapeSolver::RootOf(Slot slot) const {
  while (classes_[slot].parent != slot) {
    classes_[slot].parent = classes_[classes_[slot].parent].parent;
    slot = classes_[slot].parent;
  }
  return slot;
}

std::string ShapeSolver::NameOf(Slot slot) const {
  const auto after = std::ranges::upper_bound(offsets_, slot) - offsets_.begin();
  const Node& node = *nodes_[static_cast<std::size_t>(after) - 1];
  return node.symbols[slot - offsets_[node.place]].name();
}

void ShapeSolver::Unite(Slot a, Slot b) {
  const Slot one = RootOf(a), other = RootOf(b);
  if (one == other) return;
  Class& kept = classes_[one];
  const Class gone = classes_[other];
  if (kept.size != 0 && gone.size != 0 && kept.size != gone.size) {
    throw TensorError(Kind::kSizeConflict,
                      fmt::format("{} has size {} in {} and {} in {}", NameOf(b), kept.size,
                                  Describe(*kept.source), gone.size, Describe(*gone.source)));
  }
  if (kept.size == 0) {
    kept.size = gone.size;
    kept.source = gone.source;
  }
  classes_[other].parent = one;
}

void ShapeSolver::Set(Slot slot, std::int64_t size, const Node& source) {
  if (size < 1) {
    throw TensorError(Kind::kShape, fmt::format("{} would have size {} in {}; sizes are at least 1",
                                                NameOf(slot), size, Describe(source)));
  }
  Class& known = classes_[RootOf(slot)];
  if (known.size != 0 && known.size != size) {
    throw TensorError(Kind::kSizeConflict,
                      fmt::format("{} has size {} in {} and {} by {}", NameOf(slot), known.size,
                                  Describe(*known.source), size, Describe(source)));
  }
  known.size = size;
  known.source = &source;
}

std::int64_t ShapeSolver::SizeOf(const Node& node, std::size_t axis) const {
  return classes_[RootOf(SlotOf(node, axis))].size;
}

std::vector<std::int64_t> ShapeSolver::ShapeOf(const Node& node) const {
  std::vector<std::int64_t> shape(node.symbols.size());
  for (std::size_t axis = 0; axis < shape.size(); ++axis) shape[axis] = SizeOf(node, axis);
  return shape;
}

bool ShapeSolver::Knows(const Node& node) const {
  for (std::size_t axis = 0; axis < node.symbols.size(); ++axis) {
    if (SizeOf(node, axis) == 0) return false;
  }
  return true;
}

void ShapeSolver::ThrowUnknown(const Node& node) const {
  std::string names, tellers, others;
  const auto add = [](std::string& list, const std::string& item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  for (std::size_t axis = 0; axis < node.symbols.size(); ++axis) {
    if (SizeOf(node, axis) == 0) add(names, node.symbols[axis].name());
  }
  for (const Node* const leaf : nodes_) {
    if (leaf->kind != Node::Kind::kLeaf || Knows(*leaf)) continue;
    bool has_same = false;
    for (std::size_t i = 0; i < leaf->symbols.size(); ++i) {
      for (std::size_t axis = 0; axis < node.symbols.size(); ++axis) {
        has_same |=
            SizeOf(node, axis) == 0 && RootOf(SlotOf(*leaf, i)) == RootOf(SlotOf(node, axis));
      }
    }
    add(has_same ? tellers : others, Describe(*leaf));
  }
  if (tellers.empty()) tellers = others;
  throw TensorError(
      Kind::kSizeUnknown,
      tellers.empty()
          ? fmt::format(
                "nothing tells the size of {} in {}: compute it together with a tensor that "
                "does, or state it with Size(...) in the constraints",
                names, Describe(node))
          : fmt::format("nothing tells the size of {} in {}: set or set_size of {} would", names,
                        Describe(node), tellers));
}

void ShapeSolver::UniteBySymbol(const Node& node, const Node& other) {
  for (std::size_t i = 0; i < other.symbols.size(); ++i) {
    const int axis = AxisOf(node.symbols, other.symbols[i]);
    if (axis >= 0) Unite(SlotOf(node, static_cast<std::size_t>(axis)), SlotOf(other, i));
  }
}

void ShapeSolver::UniteOf(const Node& node) {
  if (const Node* const like = SizedLike(node)) UniteBySymbol(node, *like);
  switch (node.kind) {
    case Node::Kind::kLeaf:
      for (std::size_t axis = 0; axis < node.bound.size(); ++axis) {
        if (node.bound[axis] != 0) Set(SlotOf(node, axis), node.bound[axis], node);
      }
      return;
    case Node::Kind::kConstant:
    case Node::Kind::kCount: return;
    case Node::Kind::kPointwise:
    case Node::Kind::kReduce:
    case Node::Kind::kMean:
    case Node::Kind::kTranspose:
      for (const NodePtr& input : node.inputs) UniteBySymbol(node, *input);
      return;
    case Node::Kind::kRename:
      for (std::size_t i = 0; i < node.symbols.size(); ++i) {
        Unite(SlotOf(node, i), SlotOf(*node.inputs[0], i));
      }
      return;
    case Node::Kind::kView: {
      const Node& input = *node.inputs[0];
      for (std::size_t i = 0; i < node.index.size(); ++i) {
        const Expr& index = node.index[i];
        // A dim that is kept.
        if (index.constant() != 0 || index.divisor() != 1 || index.terms().size() != 1) continue;
        const Expr::Term& term = index.terms()[0];
        if (term.is_size || term.coefficient != 1 || term.symbol != input.symbols[i]) continue;
        const int axis = AxisOf(node.symbols, term.symbol);
        if (axis >= 0) Unite(SlotOf(node, static_cast<std::size_t>(axis)), SlotOf(input, i));
      }
      return;
    }
    case Node::Kind::kConcat:
      for (const NodePtr& input : node.inputs) {
        for (std::size_t i = 0; i < node.symbols.size(); ++i) {
          if (i != node.axis) Unite(SlotOf(node, i), SlotOf(*input, i));
        }
      }
      return;
    case Node::Kind::kReshape: {
      const Node& input = *node.inputs[0];
      for (std::size_t i = 0; i < node.axis; ++i) Unite(SlotOf(node, i), SlotOf(input, i));
      const std::size_t behind = input.symbols.size() - node.axis - node.count;
      for (std::size_t i = 0; i < behind; ++i) {
        Unite(SlotOf(node, node.axis + node.new_count + i),
              SlotOf(input, node.axis + node.count + i));
      }
      return;
    }
  }
}

ShapeSolver::Slot ShapeSolver::SlotNamed(const Node& node, const Symbol& symbol) const {
  if (const int axis = AxisOf(node.symbols, symbol); axis >= 0) {
    return SlotOf(node, static_cast<std::size_t>(axis));
  }
  const Node& input = *node.inputs[0];
  if (const int axis = AxisOf(input.symbols, symbol); axis >= 0) {
    return SlotOf(input, static_cast<std::size_t>(axis));
  }
  throw TensorError(Kind::kView,
                    fmt::format("Size({}) in {}: neither it nor its input [{}] has {}",
                                symbol.name(), Describe(node), Join(input.symbols), symbol.name()));
}

bool ShapeSolver::SolveEquations(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kView: return SolveSizes(node) | SolveView(node);
    case Node::Kind::kReshape: return SolveSizes(node) | SolveReshape(node);
    case Node::Kind::kConcat: return SolveConcat(node);
    default: return false;
  }
}

bool ShapeSolver::SolveSizes(const Node& node) {
  bool is_new = false;
  for (const SizeEquation& equation : node.sizes) {
    // 0 = expr - size: at most one unknown can be solved for.
    const auto plus = [&](std::int64_t sum, std::int64_t coefficient, std::int64_t size) {
      return Plus(sum, coefficient, size, equation.expr, node);
    };
    std::int64_t sum = plus(0, 1, equation.expr.constant());
    std::optional<Slot> unknown;
    std::int64_t unknown_coefficient = 0;
    bool is_solvable = true;
    const auto add = [&](Slot slot, std::int64_t coefficient) {
      const std::int64_t size = classes_[RootOf(slot)].size;
      if (size != 0) {
        sum = plus(sum, coefficient, size);
      } else if (!unknown || RootOf(*unknown) == RootOf(slot)) {
        unknown = slot;
        unknown_coefficient = plus(unknown_coefficient, 1, coefficient);
      } else {
        is_solvable = false;
      }
    };
    for (const Expr::Term& term : equation.expr.terms()) {
      add(SlotNamed(node, term.symbol), term.coefficient);
    }
    const std::int64_t numerator = sum;  // of the expression, if all its sizes are known
    add(SlotNamed(node, equation.symbol), -equation.expr.divisor());
    if (!is_solvable || (unknown && unknown_coefficient == 0)) continue;
    if (unknown) {
      if (sum % unknown_coefficient != 0) {
        throw TensorError(
            Kind::kSizeConflict,
            fmt::format("Size({}) = {} in {} has no whole solution", equation.symbol.name(),
                        equation.expr.ToString(), Describe(node)));
      }
      Set(*unknown, -sum / unknown_coefficient, node);
      is_new = true;
    } else if (sum != 0) {
      const Class& known = classes_[RootOf(SlotNamed(node, equation.symbol))];
      const std::int64_t divisor = equation.expr.divisor();
      throw TensorError(
          Kind::kSizeConflict,
          fmt::format("{} has size {} in {}, but Size({}) = {}, which is {}{}, in {}",
                      equation.symbol.name(), known.size, Describe(*known.source),
                      equation.symbol.name(), equation.expr.ToString(), numerator / divisor,
                      numerator % divisor == 0 ? "" : " and a part", Describe(node)));
    }
  }
  return is_new;
}

bool ShapeSolver::SolveView(const Node& node) {
  if (SizedLike(node) != nullptr) return false;
  const Node& input = *node.inputs[0];
  bool is_new = false;
  for (std::size_t i = 0; i < node.index.size(); ++i) {
    const Expr& index = node.index[i];
    if (index.divisor() != 1) continue;
    // The last index that is reached = constant + sum of c * (size - 1), all c >= 0.
    const auto plus = [&](std::int64_t sum, std::int64_t coefficient, std::int64_t size) {
      return Plus(sum, coefficient, size, index, node);
    };
    std::int64_t last = plus(0, 1, index.constant());
    std::optional<Slot> unknown;
    std::int64_t step = 0;
    bool is_solvable = true;
    for (const Expr::Term& term : index.terms()) {
      const Slot slot = SlotNamed(node, term.symbol);
      const std::int64_t size = classes_[RootOf(slot)].size;
      if (term.is_size && size != 0) {
        last = plus(last, term.coefficient, size);
      } else if (term.coefficient < 0 || term.is_size) {
        is_solvable = false;
      } else if (size != 0) {
        last = plus(last, term.coefficient, size - 1);
      } else if (!unknown) {
        unknown = slot;
        step = term.coefficient;
      } else {
        is_solvable = false;
      }
    }
    if (!is_solvable) continue;
    const std::int64_t known = SizeOf(input, i);
    if (known != 0 && unknown) {
      const std::int64_t most = plus(1, 1, FloorDivide(plus(known - 1, -1, last), step));
      if (most < 1) {
        throw TensorError(
            Kind::kSizeConflict,
            fmt::format("{} in {} does not fit into the {} elements of {}", index.ToString(),
                        Describe(node), known, input.symbols[i].name()));
      }
      Set(*unknown, most, node);
      is_new = true;
    } else if (known == 0 && !unknown && !index.terms().empty()) {
      Set(SlotOf(input, i), std::max<std::int64_t>(plus(last, 1, 1), 1), node);
      is_new = true;
    }
  }
  return is_new;
}

bool ShapeSolver::SolveReshape(const Node& node) {
  const Node& input = *node.inputs[0];
  // The product of the one side equals that of the other.
  std::optional<Slot> unknown;
  std::int64_t unknown_side = 0;
  std::int64_t products[] = {1, 1};
  const auto add = [&](int side, Slot slot) {
    const std::int64_t size = classes_[RootOf(slot)].size;
    if (size != 0) {
      if (__builtin_mul_overflow(products[side], size, &products[side])) {
        throw TensorError(Kind::kShape, fmt::format("{} has too many elements", Describe(node)));
      }
      return true;
    }
    if (unknown) return false;
    unknown = slot;
    unknown_side = side;
    return true;
  };
  for (std::size_t i = 0; i < node.count; ++i) {
    if (!add(0, SlotOf(input, node.axis + i))) return false;
  }
  for (std::size_t i = 0; i < node.new_count; ++i) {
    if (!add(1, SlotOf(node, node.axis + i))) return false;
  }
  const std::int64_t whole = products[1 - unknown_side], part = products[unknown_side];
  const bool fits = unknown ? whole % part == 0 : whole == part;
  if (!fits) {
    throw TensorError(
        Kind::kSizeConflict,
        fmt::format("{}: {} elements are not {} {}", Describe(node), unknown ? whole : products[0],
                    unknown ? "a multiple of" : "equal to", unknown ? part : products[1]));
  }
  if (unknown) Set(*unknown, whole / part, node);
  return unknown.has_value();
}

bool ShapeSolver::SolveConcat(const Node& node) {
  const Slot whole = SlotOf(node, node.axis);
  const Slot parts[] = {SlotOf(*node.inputs[0], node.axis), SlotOf(*node.inputs[1], node.axis)};
  const std::int64_t size = classes_[RootOf(whole)].size;
  const std::int64_t first = classes_[RootOf(parts[0])].size;
  const std::int64_t second = classes_[RootOf(parts[1])].size;
  if (first != 0 && second != 0) {
    Set(whole, first + second, node);
    return size == 0;
  }
  if (size == 0 || (first == 0 && second == 0)) return false;
  Set(first == 0 ? parts[0] : parts[1], size - first - second, node);
  return true;
}

// A view's own dim that no index names has the size of the dims of the same symbol elsewhere in the
// graph, if those agree.
bool ShapeSolver::SolveBySymbol() {
  bool is_new = false;
  std::map<std::uint64_t, std::optional<std::int64_t>> sizes;  // of a symbol; none: they differ
  for (const Node* const node : nodes_) {
    for (std::size_t i = 0; i < node->symbols.size(); ++i) {
      const std::int64_t size = SizeOf(*node, i);
      if (size == 0) continue;
      const auto [known, is_first] = sizes.emplace(node->symbols[i].id(), size);
      if (!is_first && known->second != size) known->second.reset();
    }
  }
  for (const Node* const node : nodes_) {
    if (node->kind != Node::Kind::kView || SizedLike(*node) != nullptr) continue;
    for (std::size_t i = 0; i < node->symbols.size(); ++i) {
      if (SizeOf(*node, i) != 0) continue;
      const bool is_named = std::ranges::any_of(node->index, [&](const Expr& index) {
        return std::ranges::any_of(index.terms(), [&](const Expr::Term& term) {
          return !term.is_size && term.symbol == node->symbols[i];
        });
      });
      const auto known = sizes.find(node->symbols[i].id());
      if (is_named || known == sizes.end() || !known->second) continue;
      Set(SlotOf(*node, i), *known->second, *node);
      is_new = true;
    }
  }
  return is_new;
}

}  // namespace loopfleet::tensor
