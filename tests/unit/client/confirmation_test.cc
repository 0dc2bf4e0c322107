#include "client/confirmation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace loopfleet::client {
namespace {

Outcome Took(std::uint32_t index, double ns, const std::string& code, Grade grade = Grade::kA,
             const std::string& uri = "benchmark://mm-v0/mm4_4_4") {
  Outcome outcome{.job = {BatchId{1}, index}, .benchmark = looptree::BenchmarkUri{uri}};
  outcome.evaluation.verdict = Measurement{.elapsed_ns = ns, .grade = grade};
  outcome.evaluation.conditions = Conditions{.hardware = {.hardware_class = "cpu:x"}};
  outcome.evaluation.code_hash = code;
  outcome.evaluation.flop_count = 128;
  return outcome;
}

std::vector<std::uint32_t> JobsOf(const Winners& winners) {
  std::vector<std::uint32_t> jobs;
  for (const Winner& winner : winners.Sorted()) jobs.push_back(winner.job.index);
  return jobs;
}

TEST(Winners, AreTheQuickestKernelsOfEachBenchmark) {
  Winners winners(2);
  winners.Add(Took(0, 300, "1"));
  winners.Add(Took(1, 100, "2"));
  winners.Add(Took(2, 200, "3"));
  winners.Add(Took(3, 500, "4", Grade::kA, "benchmark://mm-v0/mm8_8_8"));
  EXPECT_EQ(JobsOf(winners), (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST(Winners, HaveOnePlaceForEachKernel) {
  Winners winners(2);
  winners.Add(Took(0, 300, "1"));
  winners.Add(Took(1, 100, "2"));
  winners.Add(Took(2, 90, "2"));
  winners.Add(Took(3, 95, "2"));
  EXPECT_EQ(JobsOf(winners), (std::vector<std::uint32_t>{2, 0}));
}

TEST(Winners, HaveAFigureThatCanBeTrusted) {
  Winners winners(2);
  winners.Add(Took(0, 10, "1", Grade::kD));
  Outcome failed = Took(1, 10, "2");
  failed.evaluation.verdict = Failure{.code = FailureCode::kRunCrash};
  winners.Add(failed);
  EXPECT_EQ(JobsOf(winners), std::vector<std::uint32_t>{});
}

TEST(Confirmed, SaysByHowMuchTheFirstFigureWasTooGood) {
  const Confirmed one{.winner = {.elapsed_ns = 100}, .good_ns = {104, 500, 103}, .poor_ns = {90}};
  EXPECT_DOUBLE_EQ(one.elapsed_ns(), 104);
  EXPECT_NEAR(one.bias(), 0.04, 1e-12);
  const Confirmed none{.winner = {.elapsed_ns = 100}, .good_ns = {}, .poor_ns = {}};
  EXPECT_EQ(none.elapsed_ns(), 0);
  EXPECT_EQ(none.bias(), 0);
  const Confirmed other{.winner = {.elapsed_ns = 100}, .good_ns = {}, .poor_ns = {101}};
  EXPECT_NEAR(MedianBias({none, other}).value(), 0.01, 1e-12);
  EXPECT_EQ(MedianBias({none}), std::nullopt);
  // Of an even number: the mean of the two in the middle.
  const Confirmed two{.winner = {.elapsed_ns = 100}, .good_ns = {103, 105}, .poor_ns = {}};
  EXPECT_DOUBLE_EQ(two.elapsed_ns(), 104);
  EXPECT_NEAR(MedianBias({other, two}).value(), 0.025, 1e-12);
}

}  // namespace
}  // namespace loopfleet::client
