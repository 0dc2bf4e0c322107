#include "common/looptree/interpreter/lanes.h"

#include <cmath>

#include "common/base/check.h"
#include "common/looptree/interpreter/arithmetic.h"

namespace loopfleet::looptree {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// If float32 may overflow, nothing is guaranteed for the result or for anything computed from it.
double WithinFloat(double value, double error) {
  return std::abs(value) + error <= std::numeric_limits<float>::max() ? error : kInfinity;
}
double Elementary(double value, double propagated) {
  return WithinFloat(
      value, propagated + kFunctionRounding * (std::abs(value) + propagated) + kSmallestNormal);
}
double Rounded(double value, double propagated) {
  return WithinFloat(value,
                     propagated + kRounding * (std::abs(value) + propagated) + kSmallestNormal);
}

// The error of a function that never falls and rounds nothing, such as floor.
template <class Function>
double OfStep(Function function, double x, double e) {
  if (!(e < kInfinity)) return kInfinity;
  const double value = function(x);
  return WithinFloat(value, std::max(function(x + e) - value, value - function(x - e)));
}
// Of one that never falls and is accurate to 8 ulp.
template <class Function>
double OfRising(Function function, double x, double e) {
  const double value = function(x);
  return Elementary(value, std::max(function(x + e) - value, value - function(x - e)));
}
// Of sine and cosine. Of large numbers, no more is expected than that the result is one of theirs.
double OfWave(double value, double x, double e) {
  constexpr double kLargestAngle = 0x1p16;
  return std::abs(x) + e <= kLargestAngle ? Elementary(value, std::min(e, 2.0)) : 2;
}

// The most that x^y moves when x moves by e and y by f.
double MovedPower(double x, double e, double y, double f) {
  if (e == 0 && f == 0) return 0;
  const double value = std::pow(x, y);
  if (f == 0 && std::trunc(y) == y) {  // any x; a polynomial if y is not negative
    if (y == 0) return 0;
    const double nearest = std::abs(x) - e;
    if (y < 0 && nearest <= 0) return kInfinity;
    return std::abs(y) * std::pow(y < 0 ? nearest : std::abs(x) + e, y - 1) * e;
  }
  if (!(x > e)) return kInfinity;
  const double moved = (std::abs(y) + f) * -std::log1p(-e / x) + f * std::abs(std::log(x));
  return std::abs(value) * std::expm1(moved);
}

// Whether a comparison of x and y could come out otherwise.
double OfComparison(double x, double e, double y, double f) {
  if (e + f == 0) return 0;
  return std::abs(x - y) > e + f ? 0 : 1;
}

const double* ErrorsOf(Operand operand) {
  static constexpr std::array<double, kLanes> kNone{};
  return operand.exact ? kNone.data() : operand.lanes.errors.data();
}

void AccumulateErrors(Op op, Operand operand, double rounding_share, LaneResult result) {
  const double* const from = ErrorsOf(operand);
  const auto& values = operand.lanes.values;
  auto& errors = result.lanes.errors;
  const std::size_t count = result.count;
  if (op == Op::kAdd) {
    for (std::size_t i = 0; i < count; ++i) {
      errors[i] += from[i] + rounding_share * (std::abs(values[i]) + from[i]);
    }
  } else if (op == Op::kMultiply) {
    for (std::size_t i = 0; i < count; ++i) errors[i] *= std::abs(values[i]) + from[i];
  } else {
    for (std::size_t i = 0; i < count; ++i) errors[i] = std::max(errors[i], from[i]);
  }
}

}  // namespace

void ApplyUnary(Op op, Operand a, LaneResult result) {
  const std::size_t count = result.count;
  const auto each = [&](auto value) {
    for (std::size_t i = 0; i < count; ++i) result.lanes.values[i] = value(a.lanes.values[i]);
  };
  const auto bound = [&](auto error) {
    if (result.exact) return;
    for (std::size_t i = 0; i < count; ++i) {
      result.lanes.errors[i] = error(a.lanes.values[i], a.exact ? 0.0 : a.lanes.errors[i]);
    }
  };
  switch (op) {
    case Op::kLog:
      bound([](double x, double e) {
        return Elementary(std::log(x), x > e ? e / (x - e) : kInfinity);
      });
      return each([](double x) { return std::log(x); });
    case Op::kExp:
      bound(
          [](double x, double e) { return Elementary(std::exp(x), std::exp(x) * std::expm1(e)); });
      return each([](double x) { return std::exp(x); });
    case Op::kSqrt:
      bound([](double x, double e) {
        if (!(x >= e)) return kInfinity;
        return Elementary(std::sqrt(x), e == 0 ? 0 : e / (std::sqrt(x) + std::sqrt(x - e)));
      });
      return each([](double x) { return std::sqrt(x); });
    case Op::kReciprocal:
      bound([](double x, double e) {
        const double low = std::abs(x) - e;
        return low > 0 ? Elementary(1 / x, e / (std::abs(x) * low)) : kInfinity;
      });
      return each([](double x) { return 1 / x; });
    case Op::kAbs:
      bound([](double, double e) { return e; });
      return each([](double x) { return std::abs(x); });
    case Op::kNegate:
      bound([](double, double e) { return e; });
      return each([](double x) { return -x; });
    case Op::kTanh:
      bound(
          [](double x, double e) { return OfRising([](double v) { return std::tanh(v); }, x, e); });
      return each([](double x) { return std::tanh(x); });
    case Op::kErf:
      bound(
          [](double x, double e) { return OfRising([](double v) { return std::erf(v); }, x, e); });
      return each([](double x) { return std::erf(x); });
    case Op::kSin:
      bound([](double x, double e) { return OfWave(std::sin(x), x, e); });
      return each([](double x) { return std::sin(x); });
    case Op::kCos:
      bound([](double x, double e) { return OfWave(std::cos(x), x, e); });
      return each([](double x) { return std::cos(x); });
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kSign:
      bound([op](double x, double e) {
        return OfStep([op](double v) { return Unary(op, v); }, x, e);
      });
      return each([op](double x) { return Unary(op, x); });
    default: bound([](double, double e) { return e; }); return each([](double x) { return x; });
  }
}

void ApplyBinary(Op op, Operand a, Operand b, LaneResult result) {
  const double* const a_errors = ErrorsOf(a);
  const double* const b_errors = ErrorsOf(b);
  const auto& a_values = a.lanes.values;
  const auto& b_values = b.lanes.values;
  auto& values = result.lanes.values;
  auto& errors = result.lanes.errors;
  const auto each = [&, count = result.count](auto value, auto error) {
    if (result.exact) {
      for (std::size_t i = 0; i < count; ++i) values[i] = value(a_values[i], b_values[i]);
    } else if (a.exact && b.exact) {
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = value(a_values[i], b_values[i]);
        errors[i] = Rounded(values[i], 0);
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        const double combined = value(a_values[i], b_values[i]);
        errors[i] = error(combined, a_values[i], a_errors[i], b_values[i], b_errors[i]);
        values[i] = combined;
      }
    }
  };
  switch (op) {
    case Op::kAdd:
      return each([](double x, double y) { return x + y; },
                  [](double z, double, double e, double, double f) { return Rounded(z, e + f); });
    case Op::kSubtract:
      return each([](double x, double y) { return x - y; },
                  [](double z, double, double e, double, double f) { return Rounded(z, e + f); });
    case Op::kMultiply:
      return each([](double x, double y) { return x * y; },
                  [](double z, double x, double e, double y, double f) {
                    return Rounded(z, std::abs(x) * f + std::abs(y) * e + e * f);
                  });
    case Op::kDivide:
      return each([](double x, double y) { return x / y; },
                  [](double z, double, double e, double y, double f) {
                    const double low = std::abs(y) - f;
                    return low > 0 ? Rounded(z, (e + std::abs(z) * f) / low) : kInfinity;
                  });
    case Op::kMin:
      return each([](double x, double y) { return Binary(Op::kMin, x, y); },
                  [](double, double, double e, double, double f) { return std::max(e, f); });
    case Op::kMax:
      return each([](double x, double y) { return Binary(Op::kMax, x, y); },
                  [](double, double, double e, double, double f) { return std::max(e, f); });
    case Op::kGreater:
    case Op::kGreaterEqual:
    case Op::kEqual:
      return each(
          [op](double x, double y) { return Binary(op, x, y); },
          [](double, double x, double e, double y, double f) { return OfComparison(x, e, y, f); });
    case Op::kPower:
      for (std::size_t i = 0; i < result.count; ++i) {
        const double moved = MovedPower(a_values[i], a_errors[i], b_values[i], b_errors[i]);
        const double power = std::pow(a_values[i], b_values[i]);
        errors[i] = Elementary(power, moved);
        values[i] = power;
      }
      return;
    default: LF_CHECK(false, "{} is not a binary operation", OpName(op));
  }
}

void ApplySelect(Operand condition, Operand a, Operand b, LaneResult result) {
  const double* const condition_errors = ErrorsOf(condition);
  const double* const a_errors = ErrorsOf(a);
  const double* const b_errors = ErrorsOf(b);
  for (std::size_t i = 0; i < result.count; ++i) {
    const double chooser = condition.lanes.values[i];
    const double x = a.lanes.values[i];
    const double y = b.lanes.values[i];
    result.lanes.values[i] = Select(chooser, x, y);
    if (result.exact) continue;
    const double unsure = condition_errors[i];
    double& error = result.lanes.errors[i];
    error = chooser != 0 ? a_errors[i] : b_errors[i];
    if (unsure == 0 || std::abs(chooser) > unsure) continue;
    const double apart = x == y ? 0 : std::abs(x - y);  // both may be the same infinity
    error = std::max(error, apart + (chooser != 0 ? b_errors[i] : a_errors[i]));
  }
}

void Accumulate(Op op, Operand operand, double rounding_share, LaneResult result) {
  if (!result.exact) AccumulateErrors(op, operand, rounding_share, result);
  const auto& from = operand.lanes.values;
  auto& values = result.lanes.values;
  const std::size_t count = result.count;
  if (op == Op::kAdd) {
    for (std::size_t i = 0; i < count; ++i) values[i] += from[i];
  } else if (op == Op::kMultiply) {
    for (std::size_t i = 0; i < count; ++i) values[i] *= from[i];
  } else {
    for (std::size_t i = 0; i < count; ++i) values[i] = Binary(op, values[i], from[i]);
  }
}

// The only functions worth compiling for vectors wider than the baseline.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LF_FOR_WIDE_VECTORS \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define LF_FOR_WIDE_VECTORS
#endif

LF_FOR_WIDE_VECTORS
void AddProducts(double factor, const float* from, std::size_t count,
                 std::array<double, kLanes>& to) {
  double* const sums = to.data();
  for (std::size_t i = 0; i < count; ++i) sums[i] += factor * static_cast<double>(from[i]);
}

LF_FOR_WIDE_VECTORS
void AddRoundedProducts(double factor, const float* from, double rounding_share, std::size_t count,
                        Lanes& to) {
  double* const sums = to.values.data();
  double* const errors = to.errors.data();
  for (std::size_t i = 0; i < count; ++i) {
    const double product = factor * static_cast<double>(from[i]);
    const double error = Rounded(product, 0);
    sums[i] += product;
    errors[i] += error + rounding_share * (std::abs(product) + error);
  }
}
#undef LF_FOR_WIDE_VECTORS

}  // namespace loopfleet::looptree
