#include "client/python/expressions.h"

#include <fmt/format.h>

#include "client/python/array_exchange.h"

namespace loopfleet::python {

namespace nb = nanobind;
using tensor::Expr;
using tensor::Symbol;
using tensor::Tensor;

bool IsWhole(nb::handle object) {
  return PyLong_Check(object.ptr()) ||
         (PyIndex_Check(object.ptr()) != 0 && !nb::hasattr(object, "__dlpack__"));
}

std::int64_t WholeOf(nb::handle object) {
  const nb::object whole = nb::steal(PyNumber_Index(object.ptr()));
  if (!whole.is_valid()) throw nb::python_error();
  const std::int64_t number = PyLong_AsLongLong(whole.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

std::optional<Expr> TryExpr(nb::handle object) {
  if (nb::isinstance<Expr>(object)) return nb::cast<Expr>(object);
  if (nb::isinstance<Symbol>(object)) return Expr(nb::cast<Symbol>(object));
  if (IsWhole(object)) return Expr(WholeOf(object));
  return std::nullopt;
}

Expr ExprOf(nb::handle object) {
  if (std::optional<Expr> expr = TryExpr(object)) return *std::move(expr);
  throw nb::type_error(
      fmt::format("a Symbol, an Expr or a whole number is wanted, not a {}", TypeName(object))
          .c_str());
}

std::vector<Tensor::Constraint> ConstraintsOf(nb::handle object) {
  std::vector<Tensor::Constraint> constraints;
  for (const nb::handle pair : object) {
    if (!PySequence_Check(pair.ptr()) || nb::len(pair) != 2) {
      throw nb::type_error("a constraint is a pair of expressions that are equal");
    }
    constraints.emplace_back(ExprOf(pair[0]), ExprOf(pair[1]));
  }
  return constraints;
}

}  // namespace loopfleet::python
