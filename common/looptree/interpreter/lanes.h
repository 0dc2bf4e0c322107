#pragma once
// Lanes: up to kLanes neighbouring points of one operation in float64, each with a bound on how far
// a float32 kernel may be off. Evaluate consists of this arithmetic.

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "common/looptree/program/program.h"

namespace loopfleet::looptree {

inline constexpr std::size_t kLanes = 256;  // 2 KiB per array: a dozen fit in the first-level cache

// Relative rounding error of one float32 operation. The factor covers the error of float64.
inline constexpr double kRounding = 0x1p-24 * 1.001;
inline constexpr double kFunctionRounding = 8 * 0x1p-23;
// Absolute error where subnormal numbers are flushed to zero.
inline constexpr double kSmallestNormal = std::numeric_limits<float>::min();

struct Lanes {
  std::array<double, kLanes> values;
  std::array<double, kLanes> errors;  // unset if the operation is exact
};

// An operand. `exact`: it has no error, and its errors are unset.
struct Operand {
  const Lanes& lanes;
  bool exact;
};

struct LaneResult {
  Lanes& lanes;  // may also be the first operand of a binary operation
  bool exact;
  std::size_t count;  // lanes in use
};

template <class Number>
void Gather(const Number* from, std::size_t step, std::size_t count,
            std::array<double, kLanes>& to) {
  if (step == 0) {
    std::fill_n(to.begin(), count, static_cast<double>(*from));
  } else if (step == 1) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i * step];
  }
}

void ApplyUnary(Op op, Operand a, LaneResult result);
void ApplyBinary(Op op, Operand a, Operand b, LaneResult result);
void ApplySelect(Operand condition, Operand a, Operand b, LaneResult result);

// Combines one operand into a reduction's result. `rounding_share`: the rounding error of a sum,
// relative to its sum of magnitudes. For a product, `errors` accumulates the product of magnitudes.
void Accumulate(Op op, Operand operand, double rounding_share, LaneResult result);

// to[i] += factor * from[i]: the sum of products of inputs, most of the work of most programs, in
// one pass. The second is what ApplyBinary and Accumulate do where neither is exact.
void AddProducts(double factor, const float* from, std::size_t count,
                 std::array<double, kLanes>& to);
void AddRoundedProducts(double factor, const float* from, double rounding_share, std::size_t count,
                        Lanes& to);

}  // namespace loopfleet::looptree
