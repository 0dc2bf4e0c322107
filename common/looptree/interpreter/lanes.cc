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
    default: LF_CHECK(false, "{} is not a binary operation", OpName(op));
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

// The only function worth compiling for vectors wider than the baseline.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
void AddProducts(double factor, const float* from, std::size_t count,
                 std::array<double, kLanes>& to) {
  double* const sums = to.data();
  for (std::size_t i = 0; i < count; ++i) sums[i] += factor * static_cast<double>(from[i]);
}

}  // namespace loopfleet::looptree
