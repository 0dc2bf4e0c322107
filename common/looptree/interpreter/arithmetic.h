#pragma once
// What each operation computes on single numbers; both interpreters use it. If an operand of min or
// max is NaN, the result may be either operand.

#include <cmath>
#include <limits>

#include "common/base/check.h"
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
    case Op::kMin: return b < a ? b : a;
    case Op::kMax: return a < b ? b : a;
    default: LF_CHECK(false, "{} is not a binary operation", OpName(op));
  }
}

// The initial value of a reduction.
template <class Number>
Number Identity(Op op) {
  switch (op) {
    case Op::kMultiply: return Number{1};
    case Op::kMin: return std::numeric_limits<Number>::infinity();
    case Op::kMax: return -std::numeric_limits<Number>::infinity();
    default: return Number{0};
  }
}

}  // namespace loopfleet::looptree
