#pragma once
// What each operation computes on single numbers; both interpreters use it, and it is what
// compiled kernels do (docs/LOWERING.md): where an operand of min or max is NaN, the second one
// wins.

#include <cmath>

#include "common/base/check.h"
#include "common/looptree/program/initial_value.h"
#include "common/looptree/program/program.h"

namespace loopfleet::looptree {

template <class Number>
Number Unary(Op op, Number a) {
  switch (op) {
    case Op::kLog: return std::log(a);
    case Op::kExp: return std::exp(a);
    case Op::kSqrt: return std::sqrt(a);
    case Op::kAbs: return std::abs(a);
    case Op::kNegate: return -a;
    case Op::kReciprocal: return Number{1} / a;
    case Op::kTanh: return std::tanh(a);
    case Op::kErf: return std::erf(a);
    case Op::kSin: return std::sin(a);
    case Op::kCos: return std::cos(a);
    case Op::kFloor: return std::floor(a);
    case Op::kCeil: return std::ceil(a);
    case Op::kRound: return std::nearbyint(a);  // the default mode: half to even
    case Op::kSign: return static_cast<Number>((a > 0) - (a < 0));
    default: return a;  // read, write, view, copy; and add, multiply, min, max of one operand
  }
}

template <class Number>
Number Binary(Op op, Number a, Number b) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSubtract: return a - b;
    case Op::kMultiply: return a * b;
    case Op::kDivide: return a / b;
    case Op::kMin: return a < b ? a : b;
    case Op::kMax: return a > b ? a : b;
    case Op::kGreater: return a > b ? Number{1} : Number{0};
    case Op::kGreaterEqual: return a >= b ? Number{1} : Number{0};
    case Op::kEqual: return a == b ? Number{1} : Number{0};
    case Op::kPower: return std::pow(a, b);
    default: LF_CHECK(false, "{} is not a binary operation", OpName(op));
  }
}

template <class Number>
Number Select(Number condition, Number a, Number b) {
  return condition != 0 ? a : b;
}

}  // namespace loopfleet::looptree
