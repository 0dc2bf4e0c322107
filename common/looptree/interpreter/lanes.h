#pragma once
// Lanes: a handful of neighbouring points of one operation in float64, each with a bound on how far
// a float32 kernel may be off. The arithmetic that Evaluate is made of.

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "common/looptree/program/program.h"

namespace loopfleet::looptree {

inline constexpr std::size_t kLanes = 256;  // 2 KiB an array: a dozen stay in the first-level cache

// Relative, of one float32 operation; the factor covers float64's own.
inline constexpr double kRounding = 0x1p-24 * 1.001;
inline constexpr double kFunctionRounding = 8 * 0x1p-23;
// What is lost where subnormal numbers are flushed to zero.
inline constexpr double kSmallestNormal = std::numeric_limits<float>::min();

struct Lanes {
  std::array<double, kLanes> values;
  std::array<double, kLanes> errors;  // not even written where the operation is exact
};

// An operand, and whether it has no error at all.
struct Operand {
  const Lanes& lanes;
  bool exact;
};

struct LaneResult {
  Lanes& lanes;  // of a binary operation this may be its first operand
  bool exact;
  std::size_t count;  // of lanes in use
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

// Takes one operand into a reduction's result. `rounding_share` is what the roundings of a sum add,
// relative to its sum of magnitudes. The errors of a product are the product of magnitudes.
void Accumulate(Op op, Operand operand, double rounding_share, LaneResult result);

// to[i] += factor * from[i]: the sum of products that most programs are made of, in one pass.
void AddProducts(double factor, const float* from, std::size_t count,
                 std::array<double, kLanes>& to);

}  // namespace loopfleet::looptree
