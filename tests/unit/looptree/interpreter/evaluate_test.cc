#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "common/looptree/interpreter/interpret.h"
#include "tests/unit/looptree/programs.h"

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
