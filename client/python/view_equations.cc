#include "client/python/view_equations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "client/python/expressions.h"
#include "client/python/schedule_error.h"
#include "common/looptree/program/checked_math.h"
#include "tensor/tensor.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using looptree::DimId;
using looptree::NodeId;
using tensor::Expr;
using tensor::Symbol;
using tensor::Tensor;

// Which symbol stands for which var. A var that no equation names has one of its own.
class SymbolsOfVars {
 public:
  SymbolsOfVars(const IrBuilder& ir, nb::handle named) : ir_(ir), named_(named) {}

  // Notes what the caller says of the symbol; once for each symbol of the equations.
  void Note(const Symbol& symbol) {
    if (vars_.contains(symbol)) return;
    const nb::object key = nb::cast(symbol);
    const nb::object number = nb::int_(std::hash<Symbol>()(symbol));
    for (const nb::object& name : {key, number}) {
      if (PyMapping_HasKey(named_.ptr(), name.ptr()) == 0) continue;
      const auto var = nb::cast<DimId>(named_[name]);
      (void)ir_.var(var);
      if (symbols_.contains(var)) {
        RaiseSchedule(fmt::format("sym_var_map: two symbols, {} and {}, stand for var {}",
                                  symbols_.at(var).name(), symbol.name(), var));
      }
      vars_.emplace(symbol, var);
      symbols_.emplace(var, symbol);
      return;
    }
    RaiseSchedule(
        fmt::format("the symbol {} stands for no var: name it in sym_var_map", symbol.name()));
  }

  const Symbol& SymbolOf(DimId var) {
    const auto [known, is_new] = symbols_.try_emplace(var, Symbol(ir_.var(var).name));
    if (is_new) vars_.emplace(known->second, var);
    return known->second;
  }
  std::vector<Symbol> SymbolsOf(const std::vector<DimId>& vars) {
    std::vector<Symbol> symbols;
    for (const DimId var : vars) symbols.push_back(SymbolOf(var));
    return symbols;
  }
  DimId VarOf(const Symbol& symbol) const { return vars_.at(symbol); }

 private:
  const IrBuilder& ir_;
  nb::handle named_;
  std::unordered_map<Symbol, DimId> vars_;
  std::unordered_map<DimId, Symbol> symbols_;
};

// nullopt: it depends on a size that is not known yet.
std::optional<std::int64_t> SizeOf(const IrBuilder& ir, const SymbolsOfVars& symbols,
                                   const tensor::SizeEquation& equation) {
  const Expr& expr = equation.expr;
  std::int64_t value = expr.constant();
  for (const Expr::Term& term : expr.terms()) {
    const std::int64_t size = ir.var(symbols.VarOf(term.symbol)).size;
    if (size == 0) return std::nullopt;
    const auto sum = looptree::CheckedMultiplyAdd(term.coefficient, size, value);
    if (!sum) RaiseSchedule(fmt::format("{} is more than 2^63", expr.ToString()));
    value = *sum;
  }
  if (value % expr.divisor() != 0) {
    RaiseSchedule(fmt::format("Size({}) = {} has no whole solution", equation.symbol.name(),
                              expr.ToString()));
  }
  return value / expr.divisor();
}

}  // namespace

NodeId CreateViewOf(IrBuilder& ir, NodeId input, std::vector<DimId> vars, nb::handle equations,
                    nb::handle symbols) {
  SymbolsOfVars known(ir, symbols);
  const std::vector<Tensor::Constraint> constraints = ConstraintsOf(equations);
  for (const auto& [left, right] : constraints) {
    for (const Expr* const side : {&left, &right}) {
      for (const Expr::Term& term : side->terms()) known.Note(term.symbol);
    }
  }
  const std::vector<DimId> input_vars = ir.node(input).dims;
  const Tensor whole(known.SymbolsOf(input_vars));
  // Without equations, a tensor's `to` renames; here each var is itself.
  std::vector<Tensor::Constraint> all = constraints;
  if (all.empty()) {
    for (const Symbol& symbol : whole.symbolic_shape())
      all.emplace_back(Size(symbol), Size(symbol));
  }
  const Tensor view = whole.to(known.SymbolsOf(vars), all);
  for (const tensor::SizeEquation& equation : view.node()->sizes) {
    const auto size = SizeOf(ir, known, equation);
    if (size) ir.SetSize(known.VarOf(equation.symbol), *size);
  }
  looptree::Node node{.op = looptree::Op::kView, .inputs = {input}, .dims = std::move(vars)};
  for (std::size_t axis = 0; axis < input_vars.size(); ++axis) {
    const Expr& index = view.node()->index[axis];
    looptree::ViewIndex made{.input_dim = input_vars[axis],
                             .terms = {},
                             .constant = index.constant(),
                             .divisor = index.divisor(),
                             .guarded = true};
    for (const Expr::Term& term : index.terms()) {
      const DimId var = known.VarOf(term.symbol);
      if (!term.is_size) {
        made.terms.push_back({var, term.coefficient});
        continue;
      }
      if (ir.var(var).size == 0) {
        RaiseSchedule(
            fmt::format("the index along {} depends on the size of {}: create_var(\"{}\", size)",
                        ir.var(input_vars[axis]).name, ir.var(var).name, ir.var(var).name));
      }
      const auto sum =
          looptree::CheckedMultiplyAdd(term.coefficient, ir.var(var).size, made.constant);
      if (!sum) RaiseSchedule(fmt::format("{} is more than 2^63", index.ToString()));
      made.constant = *sum;
    }
    node.view.push_back(std::move(made));
  }
  return ir.CreateNode(std::move(node));
}

}  // namespace loopfleet::python
