#include "tensor/view_adjoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "tensor/shape_solver.h"

namespace loopfleet::tensor {
namespace {

bool IsJust(const Expr& expr, const Symbol& symbol) {
  return expr.constant() == 0 && expr.divisor() == 1 && expr.terms().size() == 1 &&
         expr.terms()[0] == Expr::Term{.symbol = symbol};
}

std::int64_t CoefficientOf(const Expr& expr, const Symbol& symbol) {
  for (const Expr::Term& term : expr.terms()) {
    if (!term.is_size && term.symbol == symbol) return term.coefficient;
  }
  return 0;
}

// The index equations of a view, each as an expression that is 0, and their solution for the view's
// dims by elimination in whole numbers. Dims of the view have symbols of their own here, unless
// they are dims of the input.
class Equations {
 public:
  Equations(const Node& view, const std::vector<std::int64_t>& sizes)
      : view_(view), input_(*view.inputs[0]), sizes_(sizes), symbols_(view.symbols) {
    std::vector<bool> is_kept(view.index.size());
    for (std::size_t axis = 0; axis < view.index.size(); ++axis) {
      const Symbol& symbol = input_.symbols[axis];
      is_kept[axis] = IsJust(view.index[axis], symbol) && AxisOf(view.symbols, symbol) >= 0;
    }
    for (Symbol& symbol : symbols_) {
      const int axis = AxisOf(input_.symbols, symbol);
      if (axis < 0 || !is_kept[static_cast<std::size_t>(axis)]) symbol = Symbol::Named(symbol);
    }
    solutions_.resize(symbols_.size());
    for (std::size_t axis = 0; axis < view.index.size(); ++axis) {
      if (!is_kept[axis]) rows_.push_back({.axis = axis, .zero = EquationOf(axis)});
    }
    while (Row* const row = NextRow()) Solve(*row);
  }

  const std::vector<Symbol>& symbols() const { return symbols_; }  // per dim of the view

  bool IsSolved(std::size_t dim) const { return solutions_[dim].has_value(); }
  // Whether the dim is none of the input's, and no equation gives it.
  bool IsOpen(std::size_t dim) const {
    return !IsSolved(dim) && AxisOf(input_.symbols, symbols_[dim]) < 0;
  }
  // The index along the dim, over dims of the input and open ones.
  Expr IndexOf(std::size_t dim) const {
    if (!IsSolved(dim)) return Expr(symbols_[dim]);
    const Row& row = rows_[*solutions_[dim]];
    const std::int64_t coefficient = CoefficientOf(row.zero, symbols_[dim]);
    const Expr rest = row.zero - Expr(coefficient) * Expr(symbols_[dim]);
    return Checked(row, (coefficient > 0 ? -rest : rest).DividedBy(std::abs(coefficient)));
  }
  // What must be 0 besides, over dims of the input.
  std::vector<Expr> Conditions() const {
    std::vector<Expr> conditions;
    for (const Row& row : rows_) {
      const bool is_trivial = row.zero.terms().empty() && row.zero.constant() == 0;
      if (!row.is_solved && !is_trivial) conditions.push_back(row.zero);
    }
    return conditions;
  }

 private:
  struct Row {
    std::size_t axis = 0;  // of the input, for messages
    Expr zero = 0;
    bool is_solved = false;
  };

  const Expr& Checked(const Row& row, const Expr& expr) const {
    if (expr.problem().empty()) return expr;
    throw TensorError(
        TensorError::Kind::kGradient,
        fmt::format("{} = {} in {} cannot be solved: {}", input_.symbols[row.axis].name(),
                    view_.index[row.axis].ToString(), Describe(view_), expr.problem()));
  }

  // The view's index along the axis, times its divisor, less the input's own.
  Expr EquationOf(std::size_t axis) const {
    const Expr& index = view_.index[axis];
    Expr zero = Expr(index.constant()) - Expr(index.divisor()) * Expr(input_.symbols[axis]);
    for (const Expr::Term& term : index.terms()) {
      const int dim = AxisOf(view_.symbols, term.symbol);
      const Symbol& symbol = dim < 0 ? term.symbol : symbols_[static_cast<std::size_t>(dim)];
      zero = zero + Expr(term.coefficient) * (term.is_size ? Size(symbol) : Expr(symbol));
    }
    return zero;
  }

  std::vector<std::size_t> OpenIn(const Expr& zero) const {
    std::vector<std::size_t> dims;
    for (std::size_t dim = 0; dim < symbols_.size(); ++dim) {
      if (IsOpen(dim) && CoefficientOf(zero, symbols_[dim]) != 0) dims.push_back(dim);
    }
    return dims;
  }

  // One with as few open dims as possible; null: all are solved, or have none.
  Row* NextRow() {
    Row* best = nullptr;
    std::size_t fewest = 0;
    for (Row& row : rows_) {
      const std::size_t count = row.is_solved ? 0 : OpenIn(row.zero).size();
      if (count == 0 || (best != nullptr && count >= fewest)) continue;
      best = &row;
      fewest = count;
    }
    return best;
  }

  // For its largest dim, which the sum then need not run over: with unknown sizes, the one with the
  // largest steps. Other rows lose that dim.
  void Solve(Row& row) {
    const std::vector<std::size_t> open = OpenIn(row.zero);
    const std::size_t dim = *std::ranges::max_element(open, {}, [&](std::size_t one) {
      return std::pair(sizes_[one], std::abs(CoefficientOf(row.zero, symbols_[one])));
    });
    const std::int64_t mine = CoefficientOf(row.zero, symbols_[dim]);
    for (Row& other : rows_) {
      const std::int64_t theirs = CoefficientOf(other.zero, symbols_[dim]);
      if (&other == &row || theirs == 0) continue;
      other.zero = Checked(other, Expr(mine) * other.zero - Expr(theirs) * row.zero);
    }
    row.is_solved = true;
    solutions_[dim] = static_cast<std::size_t>(&row - rows_.data());
  }

  const Node& view_;
  const Node& input_;
  const std::vector<std::int64_t>& sizes_;
  std::vector<Symbol> symbols_;
  std::vector<Row> rows_;
  std::vector<std::optional<std::size_t>> solutions_;  // per dim of the view: its row
};

// A view of `tensor` with more dims, of one element each.
Tensor WithUnitDims(const Tensor& tensor, const std::vector<Symbol>& units) {
  if (units.empty()) return tensor;
  std::vector<Symbol> symbols = tensor.symbolic_shape();
  symbols.insert(symbols.end(), units.begin(), units.end());
  std::vector<Tensor::Constraint> sizes;
  for (const Symbol& unit : units) sizes.emplace_back(Size(unit), Expr(1));
  return tensor.to(symbols, sizes);
}

}  // namespace

Tensor Renamed(const Tensor& tensor, const std::vector<Symbol>& from,
               const std::vector<Symbol>& to) {
  std::vector<Symbol> symbols = tensor.symbolic_shape();
  for (Symbol& symbol : symbols) {
    if (const int at = AxisOf(from, symbol); at >= 0) symbol = to[static_cast<std::size_t>(at)];
  }
  return symbols == tensor.symbolic_shape() ? tensor : tensor.to(symbols);
}

Tensor ViewAdjoint(const Node& view, const Tensor& adjoint,
                   const std::vector<std::int64_t>& sizes) {
  const Equations equations(view, sizes);
  const std::vector<Expr> conditions = equations.Conditions();
  // A condition is the index along a dim of one element: elsewhere the adjoint reads 0.
  std::vector<Symbol> units;
  for (std::size_t i = 0; i < conditions.size(); ++i) units.push_back(Symbol::Fresh());
  const Tensor shown = WithUnitDims(Renamed(adjoint, view.symbols, equations.symbols()), units);
  std::vector<Symbol> open;
  for (std::size_t dim = 0; dim < view.symbols.size(); ++dim) {
    if (equations.IsOpen(dim)) open.push_back(equations.symbols()[dim]);
  }
  std::vector<Symbol> symbols = view.inputs[0]->symbols;
  symbols.insert(symbols.end(), open.begin(), open.end());
  NodePtr node = MakeNode(Node::Kind::kView, {shown.node(), view.inputs[0]}, std::move(symbols));
  for (const Symbol& symbol : shown.symbolic_shape()) {
    const int dim = AxisOf(equations.symbols(), symbol);
    node->index.push_back(dim >= 0 ? equations.IndexOf(static_cast<std::size_t>(dim))
                                   : conditions[static_cast<std::size_t>(AxisOf(units, symbol))]);
  }
  const Tensor spread(std::move(node));
  return open.empty() ? spread : spread.sum(open);
}

}  // namespace loopfleet::tensor
