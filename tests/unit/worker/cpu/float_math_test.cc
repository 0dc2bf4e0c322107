// Functions of CPU kernels beside the C library in double precision, on every instruction set that
// this host runs. tests/unit/worker/gpu/codegen/float_math_test.cc looks closer at each of them.

#include "worker/cpu/float_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "tests/unit/worker/cpu/kernel_runner.h"
#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

using looptree::Op;
using looptree::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor Apply(KernelRunner& runner, Op op, const std::vector<Tensor>& inputs) {
  ProgramBuilder b;
  const auto n = b.Dim("n", static_cast<std::int64_t>(inputs[0].size()));
  std::vector<looptree::NodeId> reads;
  for (std::size_t i = 0; i < inputs.size(); ++i) reads.push_back(b.Read({n}));
  b.Write(b.Apply(op, reads, {n}), {n});
  const Kernel kernel = runner.Compile(PlainTree(b.program()));
  std::string problems;  // a NaN is not equal to itself, so an input that is one counts as changed
  return runner.Run(kernel, inputs, problems).front();
}

double UnitsOff(float got, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isinf(nearest)) return got == nearest ? 0 : kInfinity;
  const double unit =
      std::max<double>(double{std::nextafter(std::abs(nearest), kInfinity)} - std::abs(nearest),
                       std::numeric_limits<float>::denorm_min());
  return std::abs(got - exact) / unit;
}

struct Function {
  Op op;
  double (*exact)(double);
  double least;
  double most;
};
constexpr Function kFunctions[] = {
    {Op::kExp, std::exp, -110, 95},  {Op::kLog, std::log, 0, 3e38},
    {Op::kTanh, std::tanh, -90, 90}, {Op::kErf, std::erf, -20, 20},
    {Op::kSin, std::sin, -1e9, 1e9}, {Op::kCos, std::cos, -1e9, 1e9},
};

class FloatMathOnCpus : public testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (!HostRuns(GetParam())) GTEST_SKIP() << "this host does not run it";
  }
  KernelRunner& runner() {
    static KernelRunners runners;
    return runners.For(GetParam());
  }
};

TEST_P(FloatMathOnCpus, FunctionsAreGoodToThreeUnits) {
  SplitMix64 random(11);
  for (const Function& function : kFunctions) {
    SCOPED_TRACE(looptree::OpName(function.op));
    Tensor x;
    for (int i = 0; i < 30'011; ++i) {  // not a whole number of vectors
      // Half of them evenly, half of every size.
      const double share = static_cast<double>(random.Below(1'000'001)) / 1e6;
      const double size = std::exp2(static_cast<double>(random.Below(40'000)) / 1e3 - 35);
      const double even = function.least + share * (function.most - function.least);
      const double any = function.least < 0 && random.Below(2) == 0 ? -size : size;
      x.push_back(
          static_cast<float>(i % 2 == 0 ? even : std::clamp(any, function.least, function.most)));
    }
    const Tensor y = Apply(runner(), function.op, {x});
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(UnitsOff(y[i], function.exact(x[i])), 3) << x[i] << " gives " << y[i];
    }
  }
}

TEST_P(FloatMathOnCpus, PowersAreGoodToThreeUnits) {
  SplitMix64 random(12);
  std::vector<Tensor> inputs(2);
  for (int i = 0; i < 30'011; ++i) {
    const double x = std::exp2(static_cast<double>(random.Below(200'000)) / 1e3 - 100);
    const double reach = 120 / std::max(std::abs(std::log2(x)), 1e-3);
    const double y = (static_cast<double>(random.Below(2'000'001)) / 1e6 - 1) * reach;
    const bool is_negative = random.Below(3) == 0;
    inputs[0].push_back(static_cast<float>(is_negative ? -x : x));
    inputs[1].push_back(static_cast<float>(is_negative ? std::trunc(y) : y));
  }
  const Tensor z = Apply(runner(), Op::kPower, inputs);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double exact = std::pow(double{inputs[0][i]}, double{inputs[1][i]});
    ASSERT_LE(UnitsOff(z[i], exact), 3) << inputs[0][i] << " to the " << inputs[1][i];
  }
}

// The same number has the same result in every lane, in a part of a vector, and alone.
TEST_P(FloatMathOnCpus, AResultDoesNotDependOnItsPlace) {
  Tensor x = {0.1F, -0.0F, kInfinity, -kInfinity, kNan, 1e-40F, -1e-40F, 88.5F, -87.6F, 1e30F, -1};
  SplitMix64 random(13);
  while (x.size() < 53) x.push_back(static_cast<float>(random.Below(20'000)) / 1e3F - 10);
  for (const Function& function : kFunctions) {
    SCOPED_TRACE(looptree::OpName(function.op));
    const Tensor together = Apply(runner(), function.op, {x});
    for (std::size_t i = 0; i < x.size(); i += 3) {
      const float alone = Apply(runner(), function.op, {{x[i]}}).front();
      EXPECT_TRUE(std::isnan(alone) ? std::isnan(together[i])
                                    : std::bit_cast<std::uint32_t>(alone) ==
                                          std::bit_cast<std::uint32_t>(together[i]))
          << x[i] << " gives " << alone << " and " << together[i];
    }
    Tensor shifted = x;
    std::ranges::rotate(shifted, shifted.begin() + 7);
    Tensor again = Apply(runner(), function.op, {shifted});
    std::ranges::rotate(again, again.end() - 7);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(std::isnan(again[i]) ? std::isnan(together[i]) : again[i] == together[i]) << x[i];
    }
  }
}

TEST_P(FloatMathOnCpus, WhatIsNoOrdinaryNumber) {
  const Tensor x = {kInfinity, -kInfinity, kNan,  0,      -0.0F,   1,
                    -1,        1000,       -1000, 1e-40F, -1e-40F, 3e38F};
  for (const Function& function : kFunctions) {
    SCOPED_TRACE(looptree::OpName(function.op));
    const Tensor y = Apply(runner(), function.op, {x});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = function.exact(x[i]);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(y[i])) << x[i] << " gives " << y[i];
      } else {
        EXPECT_LE(UnitsOff(y[i], exact), 3) << x[i] << " gives " << y[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, FloatMathOnCpus,
                         testing::Values(CpuIsa::kAvx512, CpuIsa::kAvx2, CpuIsa::kBaseline),
                         [](const auto& named) {
                           return named.param == CpuIsa::kAvx512 ? "avx512"
                                  : named.param == CpuIsa::kAvx2 ? "avx2"
                                                                 : "baseline";
                         });

}  // namespace
}  // namespace loopfleet::worker
