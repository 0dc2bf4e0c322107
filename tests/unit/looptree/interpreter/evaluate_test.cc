#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "common/looptree/interpreter/interpret.h"
#include "tests/unit/looptree/random_walk.h"

namespace loopfleet::looptree {
namespace {

TEST(Evaluate, MatrixProductByHand) {
  const Benchmark benchmark = Opened("benchmark://mm-v0/mm2_2_3");
  const Tensor a = {1, 2, 3, 4, 5, 6};   // 2 x 3
  const Tensor b = {1, -1, 0, 2, 3, 1};  // 3 x 2
  const std::vector<Tensor> inputs = {a, b};
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  EXPECT_EQ(reference.outputs[0], (std::vector<double>{10, 6, 22, 12}));
  EXPECT_TRUE(reference.tolerance[0].empty());
}

TEST(Evaluate, ToleranceIsZeroOnlyForSmallIntegers) {
  const Benchmark benchmark = Opened("benchmark://mm-v0/mm1_1_2");
  const auto tolerance = [&](Tensor a, Tensor b) {
    const std::vector<Tensor> inputs = {std::move(a), std::move(b)};
    return Evaluate(benchmark.start.program(), inputs).tolerance[0];
  };
  EXPECT_TRUE(tolerance({2896, 2896}, {2896, 2896}).empty());   // 2 * 2896^2 < 2^24
  EXPECT_FALSE(tolerance({2897, 2897}, {2897, 2897}).empty());  // above
  EXPECT_FALSE(tolerance({0.5, 1}, {1, 1}).empty());
  const double fraction = tolerance({0.5, 1}, {1, 1})[0];
  EXPECT_GT(fraction, 0);
  EXPECT_LT(fraction, 1e-6);
  EXPECT_FALSE(tolerance({std::numeric_limits<float>::quiet_NaN(), 1}, {1, 1}).empty());
}

// A sum in float32 stays within the bound, and the bound is not absurdly wide.
TEST(Evaluate, ToleranceCoversFloatRounding) {
  const Benchmark benchmark = Opened("benchmark://mm-v0/mm4_4_1000");
  SplitMix64 random(11);
  const auto inputs = FractionInputs(benchmark.start.program(), random);
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  for (std::size_t m = 0; m < 4; ++m) {
    for (std::size_t n = 0; n < 4; ++n) {
      float forward = 0;
      for (std::size_t k = 0; k < 1000; ++k)
        forward += inputs[0][m * 1000 + k] * inputs[1][k * 4 + n];
      const double error = std::abs(forward - reference.outputs[0][m * 4 + n]);
      EXPECT_LE(error, reference.tolerance[0][m * 4 + n]);
      EXPECT_LT(reference.tolerance[0][m * 4 + n], 1e-2);
    }
  }
}

// Sums of products of inputs have code of their own, those of a negated input have not.
TEST(Evaluate, SumsOfProductsHaveTheBoundOfAnySum) {
  const auto product = [](bool of_negated) {
    std::vector<Node> nodes = {{.op = Op::kRead, .dims = {0, 2}},
                               {.op = Op::kRead, .dims = {2, 1}}};
    if (of_negated) nodes.push_back({.op = Op::kNegate, .inputs = {0}, .dims = {0, 2}});
    const auto last = [&] { return static_cast<NodeId>(nodes.size() - 1); };
    const NodeId factor = of_negated ? last() : 0;
    nodes.push_back({.op = Op::kMultiply, .inputs = {factor, 1}, .dims = {0, 2, 1}});
    nodes.push_back({.op = Op::kAdd, .inputs = {last()}, .dims = {0, 1}});
    nodes.push_back({.op = Op::kWrite, .inputs = {last()}, .dims = {0, 1}});
    return WholeLoops({.dims = {{"m", 3}, {"n", 300}, {"k", 50}}, .nodes = nodes});
  };
  const Benchmark own = product(false);
  const Benchmark general = product(true);
  SplitMix64 random(14);
  std::vector<Tensor> inputs = FractionInputs(own.start.program(), random);
  inputs[0][0] = 2;
  inputs[1][7] = 3e38F;  // their product may overflow
  const Reference found = Evaluate(own.start.program(), inputs);
  for (float& value : inputs[0]) value = -value;
  const Reference expected = Evaluate(general.start.program(), inputs);
  ASSERT_EQ(found.tolerance[0].size(), 900U);
  EXPECT_TRUE(std::ranges::any_of(found.tolerance[0], [](double t) { return std::isinf(t); }));
  for (std::size_t i = 0; i < found.outputs[0].size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_NEAR(found.outputs[0][i], expected.outputs[0][i], 1e-9 * expected.tolerance[0][i]);
    const double tolerance = expected.tolerance[0][i];
    if (std::isinf(tolerance)) {
      EXPECT_TRUE(std::isinf(found.tolerance[0][i]));
    } else {
      EXPECT_NEAR(found.tolerance[0][i], tolerance, 1e-9 * tolerance);
    }
  }
}

TEST(Evaluate, FunctionsOutsideTheirDomainPromiseNothing) {
  const Benchmark benchmark =
      WholeLoops({.dims = {{"m", 3}},
                  .nodes = {{.op = Op::kRead, .dims = {0}},
                            {.op = Op::kLog, .inputs = {0}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {1}, .dims = {0}}}});
  const std::vector<Tensor> inputs = {{1.0F, -1.0F, 0.0F}};
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  EXPECT_NEAR(reference.outputs[0][0], 0, 1e-12);
  EXPECT_LT(reference.tolerance[0][0], 1e-6);
  EXPECT_TRUE(std::isinf(reference.tolerance[0][1]));
  EXPECT_TRUE(std::isinf(reference.tolerance[0][2]));
}

// Both interpreters of every kind of program agree within the bound.
TEST(Evaluate, ToleranceCoversTheInterpreter) {
  SplitMix64 random(12);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    SCOPED_TRACE(name);
    const Program& program = benchmark.start.program();
    for (const bool whole : {true, false}) {
      const auto inputs = whole ? IntegerInputs(program, random) : FractionInputs(program, random);
      const Reference reference = Evaluate(program, inputs);
      const auto outputs = Interpret(benchmark.start, inputs);
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        for (std::size_t i = 0; i < outputs[o].size(); ++i) {
          const double expected = reference.outputs[o][i];
          const double tolerance = reference.tolerance[o].empty() ? 0 : reference.tolerance[o][i];
          if (std::isinf(tolerance) || outputs[o][i] == expected) continue;
          ASSERT_LE(std::abs(outputs[o][i] - expected), tolerance) << "element " << i;
        }
      }
    }
  }
}

TEST(Evaluate, GuardedViewsByHand) {
  const auto evaluated = [](ViewIndex index, double outside) {
    const Benchmark benchmark =
        WholeLoops({.dims = {{"i", 3}, {"o", 6}},
                    .nodes = {{.op = Op::kRead, .dims = {0}},
                              {.op = Op::kView,
                               .inputs = {0},
                               .dims = {1},
                               .view = {std::move(index)},
                               .outside = outside},
                              {.op = Op::kWrite, .inputs = {1}, .dims = {1}}}});
    const std::vector<Tensor> inputs = {{1, 2, 3}};
    const Reference reference = Evaluate(benchmark.start.program(), inputs);
    EXPECT_TRUE(reference.tolerance[0].empty());
    const Tensor interpreted = Interpret(benchmark.start, inputs)[0];
    EXPECT_EQ(reference.outputs[0], std::vector<double>(interpreted.begin(), interpreted.end()));
    return interpreted;
  };
  EXPECT_EQ(evaluated({0, {{1, 1}}, -1, 1, true}, 0), (Tensor{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(evaluated({0, {{1, 1}}, 0, 2, true}, 9), (Tensor{1, 9, 2, 9, 3, 9}));
  EXPECT_EQ(evaluated({0, {{1, -1}}, 3, 1, true}, -1), (Tensor{-1, 3, 2, 1, -1, -1}));
  EXPECT_EQ(evaluated({0, {{1, 2}}, -2, 4, true}, 0), (Tensor{0, 1, 0, 2, 0, 3}));  // (o - 1) / 2
}

// The blocks of a maximum with a tail are filled up with -inf, which rounds nothing.
TEST(Evaluate, InfiniteFillingsStayExact) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const Benchmark benchmark =
      WholeLoops({.dims = {{"k", 5}, {"o", 2}, {"i", 4}},
                  .nodes = {{.op = Op::kRead, .dims = {0}},
                            {.op = Op::kView,
                             .inputs = {0},
                             .dims = {1, 2},
                             .view = {{0, {{1, 4}, {2, 1}}, 0, 1, true}},
                             .outside = kNone},
                            {.op = Op::kMax, .inputs = {1}, .dims = {2}},
                            {.op = Op::kMax, .inputs = {2}, .dims = {}},
                            {.op = Op::kAdd, .inputs = {3, 3}, .dims = {}},
                            {.op = Op::kWrite, .inputs = {4}, .dims = {}},
                            {.op = Op::kAdd, .inputs = {1}, .dims = {1}},
                            {.op = Op::kWrite, .inputs = {6}, .dims = {1}}}});
  const std::vector<Tensor> inputs = {{3, -1, 2, 7, 5}};
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  EXPECT_EQ(reference.outputs[0], std::vector<double>{14});
  EXPECT_EQ(reference.outputs[1], (std::vector<double>{11, kNone}));
  for (const auto& tolerance : reference.tolerance) EXPECT_TRUE(tolerance.empty());
}

// -inf - -inf is NaN, and a maximum depends on which operand that is.
TEST(Evaluate, WhatMayBeNanIsNotExact) {
  const Benchmark benchmark =
      WholeLoops({.dims = {{"k", 3}, {"o", 4}},
                  .nodes = {{.op = Op::kRead, .dims = {0}},
                            {.op = Op::kView,
                             .inputs = {0},
                             .dims = {1},
                             .view = {{0, {{1, 1}}, 0, 1, true}},
                             .outside = -std::numeric_limits<double>::infinity()},
                            {.op = Op::kSubtract, .inputs = {1, 1}, .dims = {1}},
                            {.op = Op::kMax, .inputs = {2}, .dims = {}},
                            {.op = Op::kWrite, .inputs = {3}, .dims = {}}}});
  const std::vector<Tensor> inputs = {{3, -1, 2}};
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  EXPECT_FALSE(reference.tolerance[0].empty());
}

TEST(Evaluate, ComparisonsAndStepsOfExactNumbersAreExact) {
  const Benchmark benchmark =
      WholeLoops({.dims = {{"m", 5}},
                  .nodes = {{.op = Op::kRead, .dims = {0}},
                            {.op = Op::kConstant, .constant = 0.5},
                            {.op = Op::kGreater, .inputs = {0, 1}, .dims = {0}},
                            {.op = Op::kRound, .inputs = {0}, .dims = {0}},
                            {.op = Op::kSelect, .inputs = {2, 3, 1}, .dims = {0}},
                            {.op = Op::kSign, .inputs = {0}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {3}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {4}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {5}, .dims = {0}}}});
  const std::vector<Tensor> inputs = {{-1.5F, 0.5F, 1.5F, 2.5F, -0.0F}};
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  EXPECT_EQ(reference.outputs[0], (std::vector<double>{-2, 0, 2, 2, 0}));
  EXPECT_EQ(reference.outputs[1], (std::vector<double>{0.5, 0.5, 2, 2, 0.5}));
  EXPECT_EQ(reference.outputs[2], (std::vector<double>{-1, 1, 1, 1, 0}));
  for (const auto& tolerance : reference.tolerance) EXPECT_TRUE(tolerance.empty());
}

// 3 e^x, compared with itself in another order of operations: rounding decides which is greater.
TEST(Evaluate, CloseComparisonsPromiseNothing) {
  const Benchmark benchmark =
      WholeLoops({.dims = {{"m", 2}},
                  .nodes = {{.op = Op::kRead, .dims = {0}},
                            {.op = Op::kExp, .inputs = {0}, .dims = {0}},
                            {.op = Op::kAdd, .inputs = {1, 1, 1}, .dims = {0}},
                            {.op = Op::kConstant, .constant = 3},
                            {.op = Op::kMultiply, .inputs = {1, 3}, .dims = {0}},
                            {.op = Op::kGreater, .inputs = {2, 4}, .dims = {0}},
                            {.op = Op::kGreater, .inputs = {2, 0}, .dims = {0}},
                            {.op = Op::kFloor, .inputs = {1}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {5}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {6}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {7}, .dims = {0}}}});
  const std::vector<Tensor> inputs = {{0.0F, 1.0F}};
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  EXPECT_EQ(reference.tolerance[0], (std::vector<double>{1, 1}));
  EXPECT_EQ(reference.tolerance[1], (std::vector<double>{0, 0}));
  EXPECT_EQ(reference.tolerance[2], (std::vector<double>{1, 0}));  // floor(1 - eps) may be 0
}

// The C library's functions in float32 are within the bound everywhere, and it is not absurdly
// wide.
TEST(Evaluate, ToleranceCoversOwnFunctions) {
  SplitMix64 random(13);
  for (const Op op : {Op::kTanh, Op::kErf, Op::kSin, Op::kCos, Op::kPower}) {
    SCOPED_TRACE(OpName(op));
    const bool binary = op == Op::kPower;
    const Benchmark benchmark = WholeLoops(
        {.dims = {{"m", 4000}},
         .nodes = {{.op = Op::kRead, .dims = {0}},
                   {.op = Op::kRead, .dims = {0}},
                   {.op = Op::kMultiply, .inputs = {0, 0}, .dims = {0}},
                   {.op = op,
                    .inputs = binary ? std::vector<NodeId>{2, 1} : std::vector<NodeId>{2},
                    .dims = {0}},
                   {.op = Op::kWrite, .inputs = {3}, .dims = {0}}}});
    std::vector<Tensor> inputs(2, Tensor(4000));
    for (Tensor& input : inputs) {
      for (float& element : input) element = static_cast<float>(random.Below(8001)) / 1000 - 4;
    }
    const Reference reference = Evaluate(benchmark.start.program(), inputs);
    const Tensor outputs = Interpret(benchmark.start, inputs)[0];
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const double tolerance = reference.tolerance[0][i];
      if (inputs[0][i] == 0) continue;
      ASSERT_LE(std::abs(outputs[i] - reference.outputs[0][i]), tolerance) << inputs[0][i];
      ASSERT_LE(tolerance, 1e-5 * std::max(1.0, std::abs(reference.outputs[0][i])));
    }
  }
}

TEST(Evaluate, WholePowersOfAnyNumberAreBounded) {
  const Benchmark benchmark =
      WholeLoops({.dims = {{"m", 4}},
                  .nodes = {{.op = Op::kRead, .dims = {0}},
                            {.op = Op::kSin, .inputs = {0}, .dims = {0}},
                            {.op = Op::kConstant, .constant = 2},
                            {.op = Op::kPower, .inputs = {1, 2}, .dims = {0}},
                            {.op = Op::kConstant, .constant = 0.5},
                            {.op = Op::kPower, .inputs = {1, 4}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {3}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {5}, .dims = {0}}}});
  const std::vector<Tensor> inputs = {{-1.0F, 0.0F, 2.0F, 5.0F}};
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  for (const double tolerance : reference.tolerance[0]) EXPECT_LT(tolerance, 1e-5);
  EXPECT_TRUE(std::isinf(reference.tolerance[1][0]));
  EXPECT_LT(reference.tolerance[1][2], 1e-5);
}

TEST(Evaluate, LongerThanOnePieceInEveryDirection) {
  const Benchmark benchmark =
      WholeLoops({.dims = {{"m", 3}, {"n", 1000}},
                  .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                            {.op = Op::kAdd, .inputs = {0}, .dims = {0}},
                            {.op = Op::kAdd, .inputs = {0}, .dims = {1}},
                            {.op = Op::kAdd, .inputs = {0}, .dims = {}},
                            {.op = Op::kWrite, .inputs = {1}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {2}, .dims = {1}},
                            {.op = Op::kWrite, .inputs = {3}, .dims = {}}}});
  std::vector<Tensor> inputs = {Tensor(3000)};
  for (std::size_t i = 0; i < 3000; ++i) inputs[0][i] = static_cast<float>(i % 1000);
  const Reference reference = Evaluate(benchmark.start.program(), inputs);
  EXPECT_EQ(reference.outputs[0], (std::vector<double>(3, 499500)));
  for (std::size_t n = 0; n < 1000; ++n) EXPECT_EQ(reference.outputs[1][n], 3.0 * n);
  EXPECT_EQ(reference.outputs[2], (std::vector<double>{1498500}));
}

}  // namespace
}  // namespace loopfleet::looptree
