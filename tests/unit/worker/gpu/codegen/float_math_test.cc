// Compares the functions of GPU kernels with the C library in double precision.

#include "worker/cpu/float_math.h"

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

Tensor Apply(Op op, const std::vector<Tensor>& inputs) {
  ProgramBuilder b;
  const auto n = b.Dim("n", static_cast<std::int64_t>(inputs[0].size()));
  std::vector<looptree::NodeId> reads;
  for (std::size_t i = 0; i < inputs.size(); ++i) reads.push_back(b.Read({n}));
  b.Write(b.Apply(op, reads, {n}), {n});
  EmulatedDevice device;
  std::string problems;
  auto outputs = device.Run(PlainTree(b.program()), inputs, 1, problems);
  // A NaN input does not equal itself, so the run reports it as overwritten.
  const bool ordinary = std::ranges::all_of(inputs, [](const Tensor& x) {
    return std::ranges::none_of(x, [](float value) { return std::isnan(value); });
  });
  if (ordinary) {
    EXPECT_EQ(problems, "");
  }
  return std::move(outputs).value().front();
}
Tensor Apply(Op op, const Tensor& x) { return Apply(op, std::vector<Tensor>{x}); }

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

// Numbers of every size, of both signs.
Tensor ManyNumbers(std::uint64_t seed, int least_exponent, int most_exponent) {
  SplitMix64 random(seed);
  Tensor x = {0, -0.0F, 1, -1, 0.5F};
  const auto octaves = static_cast<std::uint64_t>(most_exponent - least_exponent);
  for (int i = 0; i < 20000; ++i) {
    const double exponent =
        least_exponent + static_cast<double>(random.Below(octaves * 10000)) / 1e4;
    const auto size = static_cast<float>(std::exp2(exponent));
    x.push_back(random.Below(2) == 0 ? size : -size);
  }
  return x;
}

TEST(FloatMath, OwnFunctionsAreGoodToThreeUnits) {
  struct Function {
    Op op;
    double (*exact)(double);
    int most_exponent;
  };
  for (const Function& function :
       {Function{Op::kTanh, std::tanh, 6}, Function{Op::kErf, std::erf, 4},
        Function{Op::kSin, std::sin, 16}, Function{Op::kCos, std::cos, 16}}) {
    SCOPED_TRACE(looptree::OpName(function.op));
    Tensor x = ManyNumbers(7, -30, function.most_exponent);
    // The nearest to the zeros of sine and cosine.
    for (int quarter = 1; quarter < 40000; quarter += 7) {
      if (function.most_exponent < 16) break;
      x.push_back(static_cast<float>(quarter * 1.5707963267948966));
    }
    const Tensor y = Apply(function.op, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(UnitsOff(y[i], function.exact(x[i])), 3) << x[i] << " gives " << y[i];
    }
  }
}

TEST(FloatMath, PowerIsGoodToThreeUnits) {
  SplitMix64 random(8);
  std::vector<Tensor> inputs = {{}, {}};
  for (const float x : ManyNumbers(9, -140, 127)) {
    if (x == 0) continue;
    const double reach = 120 / std::max(std::abs(std::log2(std::abs(double{x}))), 1e-3);
    double y = (static_cast<double>(random.Below(2'000'001)) / 1e6 - 1) * reach;
    if (x < 0) y = std::trunc(y);
    inputs[0].push_back(x);
    inputs[1].push_back(static_cast<float>(y));
  }
  const Tensor z = Apply(Op::kPower, inputs);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double exact = std::pow(double{inputs[0][i]}, double{inputs[1][i]});
    ASSERT_LE(UnitsOff(z[i], exact), 3) << inputs[0][i] << " to the " << inputs[1][i];
  }
}

TEST(FloatMath, PowersOfWhatIsNoOrdinaryNumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor some = {0, -0.0F, 1,         -1,         0.5F, -0.5F, 2,    -2,
                       3, -3.0F, kInfinity, -kInfinity, kNan, 1e38F, -3.5F};
  std::vector<Tensor> inputs = {{}, {}};
  for (const float x : some) {
    for (const float y : some) {
      inputs[0].push_back(x);
      inputs[1].push_back(y);
    }
  }
  const Tensor z = Apply(Op::kPower, inputs);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const float exact = std::pow(inputs[0][i], inputs[1][i]);
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(z[i])) << inputs[0][i] << " to the " << inputs[1][i];
    } else {
      EXPECT_TRUE(z[i] == exact || UnitsOff(z[i], exact) <= 3)
          << inputs[0][i] << " to the " << inputs[1][i] << " is " << exact << ", not " << z[i];
    }
  }
}

TEST(FloatMath, OwnFunctionsOfWhatIsNoOrdinaryNumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Op op : {Op::kTanh, Op::kErf}) {
    const Tensor y = Apply(op, {kInfinity, -kInfinity, kNan, -0.0F});
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], -1);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0);
  }
  for (const Op op : {Op::kSin, Op::kCos}) {
    const Tensor y = Apply(op, {kInfinity, kNan, 1e30F, -3e7F});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_LE(std::abs(y[2]), 1);
    EXPECT_LE(std::abs(y[3]), 1);
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
