#pragma once
// The value that a reduction begins with: combined with any other, it leaves that as it is.

#include <limits>

#include "common/looptree/program/program.h"

namespace loopfleet::looptree {

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
