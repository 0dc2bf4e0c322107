#pragma once
// Expressions of symbols and sizes as Python callers give them: a Symbol, an Expr or a whole
// number.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/symbol.h"
#include "tensor/tensor.h"

namespace loopfleet::python {

bool IsWhole(nanobind::handle object);
// Raises what Python's own conversion raises, such as OverflowError.
std::int64_t WholeOf(nanobind::handle object);

std::optional<tensor::Expr> TryExpr(nanobind::handle object);
// TypeError: it is none of the three.
tensor::Expr ExprOf(nanobind::handle object);

// Pairs of equal expressions, in any iterable.
std::vector<tensor::Tensor::Constraint> ConstraintsOf(nanobind::handle object);

}  // namespace loopfleet::python
