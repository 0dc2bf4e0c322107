#include "worker/verification/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/interpreter/interpret.h"
#include "tests/unit/looptree/programs.h"
#include "tests/unit/worker/backend/fake_backend.h"
#include "tests/unit/worker/verification/workload_here.h"

namespace loopfleet::worker {
namespace {

TEST(WorkloadTest, InputsAreSeededAndExpectedOutputsAreTheirSums) {
  const looptree::LoopTree tree = AddOf(1000).start;
  const auto one = MakeWorkload(tree, {1}, ComputeHere).value();
  const auto again = MakeWorkload(tree, {1}, ComputeHere).value();
  const auto other = MakeWorkload(tree, {2}, ComputeHere).value();
  const auto bytes = [](const Workload& workload) {
    return std::span<const std::byte>(workload.inputs.bytes());
  };
  ASSERT_EQ(bytes(*one).size(), bytes(*again).size());
  EXPECT_EQ(std::memcmp(bytes(*one).data(), bytes(*again).data(), bytes(*one).size()), 0);
  EXPECT_NE(std::memcmp(bytes(*one).data(), bytes(*other).data(), bytes(*one).size()), 0);
  const auto input = [&](std::size_t i) {
    return reinterpret_cast<const float*>(bytes(*one).data() + one->layout.buffers[i].offset);
  };
  ASSERT_EQ(one->expected.size(), 1U);
  EXPECT_TRUE(one->expected[0].tolerance.empty());
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(one->expected[0].rounded[i], input(0)[i] + input(1)[i]);
    EXPECT_NE(input(0)[i], 0);
  }
}

std::optional<FailureCode> RefusalOf(const looptree::LoopTree& tree, std::uint64_t seed) {
  const auto workload = MakeWorkload(tree, {seed}, ComputeHere);
  if (workload) return std::nullopt;
  return workload.error().code;
}

const float* InputOf(const Workload& workload, std::size_t input) {
  return reinterpret_cast<const float*>(workload.inputs.bytes().data() +
                                        workload.layout.buffers[input].offset);
}

// On both sides of the lengths where sums of the usual inputs, and of ones, stop being exact in
// float32.
TEST(WorkloadTest, LongSumsAreExactSoThatEachTermShows) {
  for (const char* uri :
       {"benchmark://program-v0/reduce_add1_4194304", "benchmark://program-v0/reduce_add1_4194305",
        "benchmark://program-v0/reduce_add1_16777215",
        "benchmark://program-v0/reduce_add1_16777217", "benchmark://mm-v0/mm1_1_1048576",
        "benchmark://mm-v0/mm1_1_1048577", "benchmark://mm-v0/mm1_1_16777217"}) {
    SCOPED_TRACE(uri);
    const auto workload = MakeWorkload(looptree::Opened(uri).start, {1}, ComputeHere).value();
    const ExpectedTensor& expected = workload->expected.at(0);
    EXPECT_TRUE(expected.tolerance.empty());
    const float right = expected.rounded[0];
    float last = 1;
    for (std::size_t input = 0; input < workload->layout.buffers.size(); ++input) {
      const std::size_t size = workload->layout.buffers[input].size / sizeof(float);
      last *= InputOf(*workload, input)[size - 1];
    }
    EXPECT_FALSE(Compare(std::array{right}, expected));
    EXPECT_TRUE(Compare(std::array{0.0F}, expected));
    EXPECT_TRUE(Compare(std::array{right - last}, expected));
  }
}

// Of small numbers, the extremes of many are all the same.
TEST(WorkloadTest, ExtremesOfRowsTellTheRows) {
  const auto tree = looptree::Opened("benchmark://program-v0/reduce_max100_3000").start;
  const auto workload = MakeWorkload(tree, {1}, ComputeHere).value();
  const ExpectedTensor& expected = workload->expected.at(0);
  EXPECT_TRUE(expected.tolerance.empty());
  std::vector<float> rows(expected.rounded.begin(), expected.rounded.end());
  EXPECT_FALSE(Compare(rows, expected));
  std::ranges::rotate(rows, rows.begin() + 1);
  EXPECT_TRUE(Compare(rows, expected));
}

TEST(WorkloadTest, LongProductsTellTheirFactors) {
  using looptree::Op;
  for (const std::int64_t size : {30, 300, 3000}) {  // too many for whole numbers from 60 on or so
    SCOPED_TRACE(size);
    const looptree::Benchmark benchmark =
        looptree::WholeLoops({.dims = {{"k", size}},  // product / x
                              .nodes = {{.op = Op::kRead, .dims = {0}},
                                        {.op = Op::kMultiply, .inputs = {0}, .dims = {}},
                                        {.op = Op::kDivide, .inputs = {1, 0}, .dims = {0}},
                                        {.op = Op::kWrite, .inputs = {2}, .dims = {0}}}});
    for (const InputNumbers numbers : {InputNumbers::kWhole, InputNumbers::kFractions}) {
      const auto workload =
          MakeWorkload(benchmark.start, {.value = 1, .numbers = numbers}, ComputeHere).value();
      std::vector<float> got(workload->expected.at(0).rounded.begin(),
                             workload->expected.at(0).rounded.end());
      EXPECT_FALSE(Compare(got, workload->expected[0]));
      std::ranges::rotate(got, got.begin() + 1);
      EXPECT_TRUE(Compare(got, workload->expected[0]));
      EXPECT_TRUE(Compare(looptree::Tensor(got.size()), workload->expected[0]));
    }
  }
}

// out = op(x - floor, 0), or op(0.1 x, floor)
TEST(WorkloadTest, ThresholdsArePassed) {
  using looptree::Op;
  const auto values_of = [](Op op, double number, InputNumbers numbers, double factor) {
    const looptree::Benchmark benchmark =
        looptree::WholeLoops({.dims = {{"m", 3000}},
                              .nodes = {{.op = Op::kRead, .dims = {0}},
                                        {.op = Op::kConstant, .constant = factor},
                                        {.op = Op::kMultiply, .inputs = {0, 1}, .dims = {0}},
                                        {.op = Op::kConstant, .constant = number},
                                        {.op = op, .inputs = {2, 3}, .dims = {0}},
                                        {.op = Op::kWrite, .inputs = {4}, .dims = {0}}}});
    const auto workload =
        MakeWorkload(benchmark.start, {.value = 1, .numbers = numbers}, ComputeHere).value();
    const auto rounded = workload->expected.at(0).rounded;
    return std::vector<float>(rounded.begin(), rounded.end());
  };
  for (const InputNumbers numbers : {InputNumbers::kWhole, InputNumbers::kFractions}) {
    for (const Op op : {Op::kMax, Op::kMin, Op::kGreater, Op::kGreaterEqual}) {
      for (const double number : {-100.0, -5.0, 5.0, 8.0, 1000.0}) {
        for (const double factor : {1.0, 0.1}) {
          SCOPED_TRACE(std::string(looptree::OpName(op)) + " " + std::to_string(number));
          const std::vector<float> values = values_of(op, number, numbers, factor);
          const auto most = std::ranges::count(values, values.front());
          EXPECT_LT(most, static_cast<std::ptrdiff_t>(values.size()));
        }
      }
    }
  }
  const std::vector<float> equal = values_of(Op::kEqual, 2, InputNumbers::kWhole, 1);
  EXPECT_NE(std::ranges::count(equal, 1.0F), 0);
}

TEST(WorkloadTest, WhatIsConstantOnAnyInputsIsAccepted) {
  using looptree::Op;
  const looptree::Benchmark benchmark =
      looptree::WholeLoops({.dims = {{"m", 3000}},
                            .nodes = {{.op = Op::kRead, .dims = {0}},
                                      {.op = Op::kSubtract, .inputs = {0, 0}, .dims = {0}},
                                      {.op = Op::kWrite, .inputs = {1}, .dims = {0}}}});
  EXPECT_EQ(RefusalOf(benchmark.start, 1), std::nullopt);
}

// How often the reference is computed if all elements are the same on any inputs.
int EvaluationsOf(looptree::Program program) {
  int evaluations = 0;
  const Evaluator same = [&](const looptree::Program&, std::span<const looptree::Tensor>) {
    ++evaluations;
    return looptree::Reference{.outputs = {{1, 1}}, .tolerance = {{}}};
  };
  const auto workload = MakeWorkload(
      looptree::WholeLoops(std::move(program)).start, {1},
      [&](const looptree::LoopTree& tree, InputSeed seed, const SharedMemory& inputs,
          const SharedMemory& reference) {
        return ComputeReference(tree.program(), seed, inputs.bytes(), reference.bytes(), same);
      });
  EXPECT_TRUE(workload);
  return evaluations;
}

TEST(WorkloadTest, LargeProgramsAreEvaluatedAFewTimesOnly) {
  using looptree::Op;
  // sum of x[m] y[k] z[n]: 2^33 operations
  EXPECT_EQ(EvaluationsOf({.dims = {{"m", 1 << 15}, {"k", 1 << 15}, {"n", 4}},
                           .nodes = {{.op = Op::kRead, .dims = {0}},
                                     {.op = Op::kRead, .dims = {1}},
                                     {.op = Op::kRead, .dims = {2}},
                                     {.op = Op::kMultiply, .inputs = {0, 1, 2}, .dims = {0, 1, 2}},
                                     {.op = Op::kAdd, .inputs = {3}, .dims = {2}},
                                     {.op = Op::kWrite, .inputs = {4}, .dims = {2}}}}),
            1);
  // One number, repeated 2^27 times: eight times that is the bound; then the first draw again.
  EXPECT_EQ(EvaluationsOf({.dims = {{"m", 1 << 27}},
                           .nodes = {{.op = Op::kRead},
                                     {.op = Op::kView, .inputs = {0}, .dims = {0}},
                                     {.op = Op::kWrite, .inputs = {1}, .dims = {0}}}}),
            9);
}

// The tree as written, on each program's fractions: no correct kernel may fail, and one that drops
// the last 12 bits of the inputs, which the whole numbers of sums do not need, has to.
TEST(WorkloadTest, FractionsShowWhatWholeNumbersHide) {
  const auto in_short = [](looptree::Tensor tensor) {
    for (float& value : tensor) {
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xfffff000U);
    }
    return tensor;
  };
  const std::vector<std::pair<std::string, bool>> programs = {
      {"benchmark://loop_tool-cpu-v0/1000", false},
      {"benchmark://program-v0/reduce_max100_300", false},
      {"benchmark://mm-v0/mm33_48_64", true},
      {"benchmark://conv-v0/conv1_3_9_9__4_3_3_3", true},
      {"benchmark://program-v0/positive_product33_48_64", true},
      {"benchmark://program-v0/chain100_300", true}};
  for (const auto& [uri, sums_products] : programs) {
    SCOPED_TRACE(uri);
    const looptree::LoopTree tree = looptree::Opened(uri).start;
    for (const InputNumbers numbers : {InputNumbers::kWhole, InputNumbers::kFractions}) {
      const auto workload =
          MakeWorkload(tree, {.value = 1, .numbers = numbers}, ComputeHere).value();
      std::vector<looptree::Tensor> inputs;
      std::vector<looptree::Tensor> short_inputs;
      for (std::size_t input = 0; input < workload->layout.buffers.size(); ++input) {
        const float* const first = InputOf(*workload, input);
        inputs.emplace_back(first, first + workload->layout.buffers[input].size / sizeof(float));
        short_inputs.push_back(in_short(inputs.back()));
      }
      const auto right = looptree::Interpret(tree, inputs);
      EXPECT_FALSE(Compare(right[0], workload->expected[0]));
      const auto wrong = looptree::Interpret(tree, short_inputs);
      EXPECT_EQ(Compare(wrong[0], workload->expected[0]).has_value(),
                numbers == InputNumbers::kFractions || !sums_products);
    }
  }
}

TEST(WorkloadTest, WhatRoundingHidesIsRefused) {
  const looptree::Benchmark benchmark = looptree::WholeLoops(
      {.dims = {{"k", 1 << 23}},
       .nodes = {{.op = looptree::Op::kRead, .dims = {0}},
                 {.op = looptree::Op::kConstant, .constant = 0.1},
                 {.op = looptree::Op::kMultiply, .inputs = {0, 1}, .dims = {0}},
                 {.op = looptree::Op::kAdd, .inputs = {2}, .dims = {}},
                 {.op = looptree::Op::kWrite, .inputs = {3}, .dims = {}}}});
  const auto workload = MakeWorkload(benchmark.start, {1}, ComputeHere);
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().code, FailureCode::kUnsupported);
  EXPECT_NE(workload.error().message.find("output 0"), std::string::npos);
}

looptree::Benchmark Softmax(std::int64_t k) {
  return looptree::WholeLoops(
      {.dims = {{"m", 8}, {"k", k}, {"n", 16}},
       .nodes = {{.op = looptree::Op::kRead, .dims = {0, 1}},
                 {.op = looptree::Op::kRead, .dims = {1, 2}},
                 {.op = looptree::Op::kMultiply, .inputs = {0, 1}, .dims = {0, 1, 2}},
                 {.op = looptree::Op::kAdd, .inputs = {2}, .dims = {0, 2}},
                 {.op = looptree::Op::kExp, .inputs = {3}, .dims = {0, 2}},
                 {.op = looptree::Op::kAdd, .inputs = {4}, .dims = {0}},
                 {.op = looptree::Op::kDivide, .inputs = {4, 5}, .dims = {0, 2}},
                 {.op = looptree::Op::kWrite, .inputs = {6}, .dims = {0, 2}}}});
}

TEST(WorkloadTest, WhatWouldOverflowGetsSmallerInputs) {
  for (const std::int64_t k : {4, 64, 1024}) {
    SCOPED_TRACE(k);
    const looptree::LoopTree tree = Softmax(k).start;
    const auto workload = MakeWorkload(tree, {1}, ComputeHere).value();
    std::vector<looptree::Tensor> inputs;
    for (std::size_t input = 0; input < workload->layout.buffers.size(); ++input) {
      const float* const first = InputOf(*workload, input);
      inputs.emplace_back(first, first + workload->layout.buffers[input].size / sizeof(float));
    }
    const std::vector<looptree::Tensor> right = looptree::Interpret(tree, inputs);
    const auto mismatch = Compare(right[0], workload->expected[0]);
    EXPECT_FALSE(mismatch) << Describe(0, *mismatch);
    EXPECT_TRUE(Compare(looptree::Tensor(right[0].size()), workload->expected[0]));
  }
}

TEST(WorkloadTest, WhatOverflowsOnAnyInputsIsRefused) {
  const looptree::Benchmark benchmark = looptree::WholeLoops(
      {.dims = {{"m", 4}},
       .nodes = {{.op = looptree::Op::kRead, .dims = {0}},
                 {.op = looptree::Op::kConstant, .constant = 1e30},
                 {.op = looptree::Op::kMultiply, .inputs = {0, 1, 1}, .dims = {0}},
                 {.op = looptree::Op::kWrite, .inputs = {2}, .dims = {0}}}});
  const auto workload = MakeWorkload(benchmark.start, {1}, ComputeHere);
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().code, FailureCode::kUnsupported);
  EXPECT_NE(workload.error().message.find("overflow"), std::string::npos);
}

// out = sqrt(ceiling - x), with positive x
looptree::Benchmark RootBelow(double ceiling) {
  return looptree::WholeLoops(
      {.dims = {{"m", 3000}},
       .nodes = {{.op = looptree::Op::kRead, .dims = {0}},
                 {.op = looptree::Op::kConstant, .constant = ceiling},
                 {.op = looptree::Op::kSubtract, .inputs = {1, 0}, .dims = {0}},
                 {.op = looptree::Op::kSqrt, .inputs = {2}, .dims = {0}},
                 {.op = looptree::Op::kWrite, .inputs = {3}, .dims = {0}}}});
}

TEST(WorkloadTest, OutputsThatAreAllNanAreRefused) {
  EXPECT_EQ(RefusalOf(RootBelow(-1).start, 1), FailureCode::kUnsupported);
}

TEST(WorkloadTest, WhatIsAllNanGetsSmallerInputs) {
  const auto workload = MakeWorkload(RootBelow(0.9).start, {1}, ComputeHere).value();
  const ExpectedTensor& expected = workload->expected.at(0);
  const looptree::Tensor nans(expected.rounded.size(), std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(Compare(expected.rounded, expected));
  EXPECT_TRUE(Compare(nans, expected));
}

// Half of the first draw, the numbers above 2.5, would be NaN and verify nothing.
TEST(WorkloadTest, WhatIsHalfNanGetsSmallerInputs) {
  const auto workload = MakeWorkload(RootBelow(2.5).start, {1}, ComputeHere).value();
  const ExpectedTensor& expected = workload->expected.at(0);
  EXPECT_TRUE(
      std::ranges::none_of(expected.rounded, [](float value) { return std::isnan(value); }));
  std::vector<float> got(expected.rounded.begin(), expected.rounded.end());
  for (std::size_t i = got.size() / 2; i < got.size(); ++i) got[i] = std::nanf("");
  const auto mismatch = Compare(got, expected);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->element, got.size() / 2);
}

TEST(WorkloadTest, WhatIsAllZeroByUnderflowGetsSmallerInputs) {
  const looptree::Benchmark benchmark = looptree::WholeLoops(
      {.dims = {{"m", 3000}},
       .nodes = {{.op = looptree::Op::kRead, .dims = {0}},
                 {.op = looptree::Op::kConstant, .constant = -1000},
                 {.op = looptree::Op::kAbs, .inputs = {0}, .dims = {0}},
                 {.op = looptree::Op::kMultiply, .inputs = {1, 2}, .dims = {0}},
                 {.op = looptree::Op::kExp, .inputs = {3}, .dims = {0}},
                 {.op = looptree::Op::kWrite, .inputs = {4}, .dims = {0}}}});
  const auto workload = MakeWorkload(benchmark.start, {1}, ComputeHere).value();
  const ExpectedTensor& expected = workload->expected.at(0);
  EXPECT_TRUE(Compare(looptree::Tensor(expected.rounded.size()), expected));
}

// out[m,n] = (0.1 max(max over k of x[m,k], floor) - 0.1 floor + 1e-9) y[n]: rounding hides the
// rows in which no x exceeds the floor.
looptree::Benchmark HiddenRows(double floor, std::int64_t k) {
  using looptree::Op;
  return looptree::WholeLoops({.dims = {{"m", 1024}, {"k", k}, {"n", 1024}},
                               .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                                         {.op = Op::kRead, .dims = {2}},
                                         {.op = Op::kConstant, .constant = floor},
                                         {.op = Op::kConstant, .constant = 0.1},
                                         {.op = Op::kConstant, .constant = 1e-9},
                                         {.op = Op::kMax, .inputs = {0}, .dims = {0}},
                                         {.op = Op::kMax, .inputs = {5, 2}, .dims = {0}},
                                         {.op = Op::kMultiply, .inputs = {6, 3}, .dims = {0}},
                                         {.op = Op::kMultiply, .inputs = {2, 3}, .dims = {}},
                                         {.op = Op::kSubtract, .inputs = {7, 8}, .dims = {0}},
                                         {.op = Op::kAdd, .inputs = {9, 4}, .dims = {0}},
                                         {.op = Op::kMultiply, .inputs = {10, 1}, .dims = {0, 2}},
                                         {.op = Op::kWrite, .inputs = {11}, .dims = {0, 2}}}});
}

TEST(WorkloadTest, OutputsOfWhichRoundingHidesHalfAreRefused) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {  // a little more than half, or a little less
    EXPECT_EQ(RefusalOf(HiddenRows(2.5, 1).start, seed), FailureCode::kUnsupported) << seed;
  }
  EXPECT_EQ(RefusalOf(HiddenRows(1.5, 1).start, 1), FailureCode::kUnsupported);  // a quarter
}

TEST(WorkloadTest, OutputsOfWhichRoundingHidesAFewWholeRowsAreRefused) {
  // One row of 256, so far less than 1 % of all elements.
  EXPECT_EQ(RefusalOf(HiddenRows(1.5, 4).start, 1), FailureCode::kUnsupported);
}

TEST(WorkloadTest, WhatCancelsByChanceGetsFinerInputs) {
  using looptree::Op;
  const looptree::Benchmark benchmark =
      looptree::WholeLoops({.dims = {{"m", 3000}},  // 0.1 x + 0.2 y - 0.3 z
                            .nodes = {{.op = Op::kRead, .dims = {0}},
                                      {.op = Op::kRead, .dims = {0}},
                                      {.op = Op::kRead, .dims = {0}},
                                      {.op = Op::kConstant, .constant = 0.1},
                                      {.op = Op::kConstant, .constant = 0.2},
                                      {.op = Op::kConstant, .constant = -0.3},
                                      {.op = Op::kMultiply, .inputs = {0, 3}, .dims = {0}},
                                      {.op = Op::kMultiply, .inputs = {1, 4}, .dims = {0}},
                                      {.op = Op::kMultiply, .inputs = {2, 5}, .dims = {0}},
                                      {.op = Op::kAdd, .inputs = {6, 7, 8}, .dims = {0}},
                                      {.op = Op::kWrite, .inputs = {9}, .dims = {0}}}});
  EXPECT_EQ(RefusalOf(benchmark.start, 1), std::nullopt);
}

TEST(WorkloadTest, ProgramsOfEveryKindCanBeVerified) {
  for (const char* member :
       {"positive_product33_48_64", "positive_product1_1_1", "mmbias33_48_64", "mmbias1_1_1",
        "twomm8_512_512_8", "twomm1_4096_4100_1", "twomm1_1_1_1", "chain1_1", "chain100_300",
        "reduce_add1_1", "reduce_add100_3000", "reduce_add2_16777217", "reduce_max1_1",
        "reduce_max100_300", "shift1_1", "shift3000_1", "shift100_300", "conv1d1_1",
        "conv1d3000_64"}) {
    const auto start = looptree::Opened(std::string("benchmark://program-v0/") + member).start;
    for (const std::uint64_t seed : {1, 2})
      EXPECT_EQ(RefusalOf(start, seed), std::nullopt) << member;
  }
}

// The cheapest of some members: the largest convolutions take half a minute.
TEST(WorkloadTest, EveryDatasetCanBeVerified) {
  SplitMix64 random(7);
  for (const looptree::Dataset& dataset : looptree::Datasets()) {
    looptree::LoopTree cheapest = looptree::Opened(std::string(dataset.example)).start;
    for (int i = 0; i < 50 && dataset.size > 0; ++i) {
      const std::string member = looptree::DatasetMember(dataset, random.Below(dataset.size));
      auto opened = looptree::OpenBenchmark(looptree::BenchmarkUri{member});
      if (opened && opened->start.facts().flop_count < cheapest.facts().flop_count) {
        cheapest = std::move(opened->start);
      }
    }
    EXPECT_EQ(RefusalOf(cheapest, 1), std::nullopt) << dataset.prefix;
  }
}

TEST(WorkloadTest, TheCacheKeepsWhatFitsAndVariesTheInputs) {
  WorkloadCache cache({.max_bytes = 5'000'000, .seeds = 2});  // inputs take a huge page at least
  const looptree::LoopTree tree = AddOf(1000).start;
  const auto first = cache.Get(tree, ComputeHere).value();
  const auto second = cache.Get(tree, ComputeHere).value();
  EXPECT_NE(first->seed, second->seed);
  EXPECT_EQ(cache.Get(tree, ComputeHere).value(), first);
  EXPECT_EQ(cache.Get(tree, ComputeHere).value(), second);
  const looptree::LoopTree big = AddOf(100'000).start;
  ASSERT_TRUE(cache.Get(big, ComputeHere));  // evicts everything else
  ASSERT_TRUE(cache.Get(big, ComputeHere));
  EXPECT_NE(cache.Get(tree, ComputeHere).value(), first);
}

// Workloads in use by jobs count too, not only kept ones.
TEST(WorkloadTest, WhatIsInFlightIsBounded) {
  const std::size_t each = MakeWorkload(AddOf(1000).start, {1}, ComputeHere).value()->bytes();
  WorkloadCache cache({.max_bytes = 1, .seeds = 1, .max_total_bytes = 2 * each});
  auto one = cache.Get(AddOf(1000).start, ComputeHere).value();
  auto two = cache.Get(AddOf(1001).start, ComputeHere).value();
  std::atomic<bool> is_asked_for = false;
  std::atomic<bool> is_there = false;
  std::jthread third([&] {
    is_asked_for = true;
    const auto three = cache.Get(AddOf(1002).start, ComputeHere).value();
    is_there = true;
  });
  while (!is_asked_for) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(is_there);
  one.reset();  // no longer in use
  third.join();
  EXPECT_TRUE(is_there);
  two.reset();
  EXPECT_TRUE(cache.Get(AddOf(2000).start, ComputeHere));  // kept ones make room
  EXPECT_TRUE(cache.Get(AddOf(3000).start, ComputeHere));
}

TEST(WorkloadTest, ALargeOneHasItsTurnBeforeSmallOnesThatCameLater) {
  constexpr std::int64_t kLarge = 4'000'000;
  const std::size_t small = MakeWorkload(AddOf(1000).start, {1}, ComputeHere).value()->bytes();
  const std::size_t large = MakeWorkload(AddOf(kLarge).start, {1}, ComputeHere).value()->bytes();
  // Not enough for both at once: otherwise chance would decide which of the two threads makes its
  // workload first. So the second waits for what the first releases, which the cache would keep.
  WorkloadCache cache({.max_bytes = 1, .seeds = 1, .max_total_bytes = large + small - 1});
  auto one = cache.Get(AddOf(1001).start, ComputeHere).value();
  auto two = cache.Get(AddOf(1002).start, ComputeHere).value();
  const auto wait_until_waiting = [&](std::size_t count) {
    while (cache.CountWaiting() < count) std::this_thread::yield();
  };
  std::vector<std::int64_t> order;  // of the makers, which run one at a time
  std::mutex mutex;
  const auto get = [&](std::int64_t size) {
    const auto got = cache.Get(AddOf(size).start, [&](const auto& tree, const auto&... more) {
      {
        std::lock_guard lock(mutex);
        order.push_back(size);
      }
      return ComputeHere(tree, more...);
    });
    EXPECT_TRUE(got);
  };
  std::jthread first([&] { get(kLarge); });
  wait_until_waiting(1);
  std::jthread second([&] { get(1003); });  // would fit
  wait_until_waiting(2);
  one.reset();
  two.reset();
  first.join();
  second.join();
  EXPECT_EQ(order, (std::vector<std::int64_t>{kLarge, 1003}));
}

TEST(WorkloadTest, OneAloneMayBeBiggerThanAll) {
  WorkloadCache cache({.seeds = 1, .max_total_bytes = 1});
  for (const std::int64_t size : {1000, 2000, 1000}) {
    EXPECT_TRUE(cache.Get(AddOf(size).start, ComputeHere));
  }
}

int OpenDescriptors() {
  const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<int>(std::distance(begin(entries), end(entries)));
}

TEST(WorkloadTest, ManySmallOnesDoNotUseUpTheDescriptors) {
  WorkloadCache cache({.max_count = 8, .seeds = 1});
  const int before = OpenDescriptors();
  for (int size = 1; size <= 50; ++size) ASSERT_TRUE(cache.Get(AddOf(size).start, ComputeHere));
  EXPECT_LE(OpenDescriptors(), before + 2 * 8);
  const auto kept = cache.Get(AddOf(50).start, ComputeHere).value();
  EXPECT_EQ(cache.Get(AddOf(50).start, ComputeHere).value(), kept);
}

TEST(WorkloadTest, WhatOneThreadMakesTheOthersWaitFor) {
  WorkloadCache cache({.seeds = 1});
  const looptree::LoopTree tree = AddOf(1000).start;
  std::atomic<int> made = 0;
  std::vector<std::shared_ptr<const Workload>> got(8);
  {
    std::vector<std::jthread> threads;
    for (auto& workload : got) {
      threads.emplace_back([&] {
        workload = cache
                       .Get(tree,
                            [&](const auto& of, InputSeed seed, const SharedMemory& inputs,
                                const SharedMemory& reference) {
                              ++made;
                              return ComputeHere(of, seed, inputs, reference);
                            })
                       .value();
      });
    }
  }
  EXPECT_EQ(made, 1);
  for (const auto& workload : got) EXPECT_EQ(workload, got[0]);
}

TEST(WorkloadTest, FractionsAreOnlyForSmallProgramsAndNeverWaitForRoom) {
  const looptree::LoopTree tree = AddOf(1000).start;
  const std::size_t each = MakeWorkload(tree, {1}, ComputeHere).value()->bytes();
  WorkloadCache cache({.max_bytes = 1, .max_fraction_flops = 1001, .max_total_bytes = 2 * each});
  EXPECT_EQ(cache.GetFractions(AddOf(1002).start, ComputeHere), nullptr);
  const auto whole = cache.Get(tree, ComputeHere).value();
  auto fractions = cache.GetFractions(tree, ComputeHere);
  ASSERT_TRUE(fractions);
  EXPECT_EQ(fractions->seed.numbers, InputNumbers::kFractions);
  EXPECT_EQ(cache.GetFractions(AddOf(1001).start, ComputeHere), nullptr) << "no room";
  EXPECT_EQ(cache.GetFractions(tree, ComputeHere), fractions);
  fractions.reset();
  EXPECT_TRUE(cache.GetFractions(AddOf(1001).start, ComputeHere));
  EXPECT_EQ(cache.CountWaiting(), 0U);
}

TEST(WorkloadTest, AFailureIsPassedOnAndNotKept) {
  WorkloadCache cache({.seeds = 1});
  const looptree::LoopTree tree = AddOf(1000).start;
  const auto failed = cache.Get(tree, [](auto&&...) -> std::expected<std::vector<bool>, Failure> {
    return std::unexpected(Failure{.code = FailureCode::kLimitFlops});
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, FailureCode::kLimitFlops);
  EXPECT_TRUE(cache.Get(tree, ComputeHere));
}

}  // namespace
}  // namespace loopfleet::worker
