// Compares exp and log of GPU kernels with the C library in double precision.

#include "worker/gpu/codegen/float_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "tests/unit/worker/gpu/codegen/emulated_device.h"
#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

using looptree::Op;
using looptree::Tensor;

Tensor Apply(Op op, const Tensor& x) {
  ProgramBuilder b;
  const auto n = b.Dim("n", static_cast<std::int64_t>(x.size()));
  b.Write(b.Compute(op, {b.Read({n})}, {n}), {n});
  EmulatedDevice device;
  std::string problems;
  auto outputs = device.Run(PlainTree(b.program()), {x}, 1, problems);
  // A NaN input does not equal itself, so the run reports it as overwritten.
  if (std::ranges::none_of(x, [](float value) { return std::isnan(value); })) {
    EXPECT_EQ(problems, "");
  }
  return std::move(outputs).value().front();
}

// The error of `got` in units in the last place of float32.
double UnitsOff(float got, double exact) {
  const auto nearest = static_cast<float>(exact);
  const double unit = std::max<double>(
      double{std::nextafter(std::abs(nearest), 2 * std::abs(nearest) + 1)} - std::abs(nearest),
      std::numeric_limits<float>::denorm_min());
  return std::abs(got - exact) / unit;
}

TEST(FloatMath, ExpIsGoodToTwoUnits) {
  SplitMix64 random(3);
  Tensor x;
  for (int i = 0; i < 20000; ++i) {
    x.push_back(static_cast<float>(random.Below(1'900'000)) / 1e4F - 102);
  }
  const Tensor y = Apply(Op::kExp, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] > 88.7F) continue;
    ASSERT_LE(UnitsOff(y[i], std::exp(double{x[i]})), 2) << "exp(" << x[i] << ") = " << y[i];
  }
}

TEST(FloatMath, LogIsGoodToTwoUnits) {
  SplitMix64 random(5);
  Tensor x = {std::numeric_limits<float>::denorm_min(),
              1e-40F,
              0.5F,
              0.70710678F,
              1,
              1.0000001F,
              0.99999994F,
              2,
              std::numeric_limits<float>::max()};
  for (int i = 0; i < 20000; ++i) {
    x.push_back(std::exp2(static_cast<float>(random.Below(2'650'000)) / 1e4F - 140));
  }
  const Tensor y = Apply(Op::kLog, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(UnitsOff(y[i], std::log(double{x[i]})), 2) << "log(" << x[i] << ") = " << y[i];
  }
}

TEST(FloatMath, WhatIsNoOrdinaryNumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor exps = Apply(Op::kExp, {kInfinity, -kInfinity, kNan, 0, 1000, -1000});
  EXPECT_EQ(exps[0], kInfinity);
  EXPECT_EQ(exps[1], 0);
  EXPECT_TRUE(std::isnan(exps[2]));
  EXPECT_EQ(exps[3], 1);
  EXPECT_EQ(exps[4], kInfinity);
  EXPECT_EQ(exps[5], 0);
  const Tensor logs = Apply(Op::kLog, {kInfinity, -kInfinity, kNan, 0, -1, 1});
  EXPECT_EQ(logs[0], kInfinity);
  EXPECT_TRUE(std::isnan(logs[1]));
  EXPECT_TRUE(std::isnan(logs[2]));
  EXPECT_EQ(logs[3], -kInfinity);
  EXPECT_TRUE(std::isnan(logs[4]));
  EXPECT_EQ(logs[5], 0);
}

}  // namespace
}  // namespace loopfleet::worker
