#include "client/host_trial.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/client/trial_figure.h"

namespace loopfleet::client {
namespace {

TEST(HostTrial, ComparesFiguresOfOneKernelFromDifferentStarts) {
  const TrialReport report = Assess({.figures = {Figure(0, 0, 100), Figure(0, 1, 101),
                                                 Figure(0, 1, 500, Grade::kC), Figure(1, 0, 900)}});
  EXPECT_EQ(report.figures, 4u);
  EXPECT_EQ(report.starts, 2u);
  ASSERT_EQ(report.agreement.at(Grade::kA).pairs, 1u);
  EXPECT_NEAR(report.agreement.at(Grade::kA).p95, 0.01, 1e-12);
  ASSERT_EQ(report.agreement.at(Grade::kC).pairs, 1u);
  EXPECT_NEAR(report.agreement.at(Grade::kC).p50, 4, 1e-12);
  EXPECT_EQ(report.good.pairs, 1u);
  EXPECT_DOUBLE_EQ(report.good_share, 0.75);
  EXPECT_DOUBLE_EQ(report.coverage, 2.0 / 3)
      << "the two of grade A hold each other, the one of C does not hold that of A";
}

TEST(HostTrial, ComparesAloneWithBatchByKernel) {
  const TrialReport report =
      Assess({.figures = {Figure(0, 0, 100), Figure(0, 0, 103, Grade::kA, true), Figure(1, 0, 200),
                          Figure(1, 0, 202, Grade::kA, true), Figure(2, 0, 7)},
              .latencies = {{.ms = 9}, {.ms = 11}, {.ms = 30}},
              .peaks = {99, 100, 102}});
  EXPECT_NEAR(report.alone_to_batch_p50, 0.01, 1e-12);
  EXPECT_NEAR(report.alone_to_batch_max, 0.03, 1e-12);
  EXPECT_EQ(report.latency_p50_ms, 11);
  EXPECT_NEAR(report.peak_range, 0.03, 1e-12);
}

TEST(HostTrial, TellsTheLatencyOfShortKernelsFromThatOfLongOnes) {
  HostTrial trial;
  for (int i = 0; i < 200; ++i) {
    TrialLatency latency{.ms = 10, .run_ms = 0.1};
    if (i % 10 == 3) latency = {.ms = 150, .run_ms = 25};
    if (i == 113 || i == 173) latency = {.ms = 400, .run_ms = 25};
    latency.stages[Stage::kVerify] = std::chrono::milliseconds(i == 113 ? 20 : 40);
    trial.latencies.push_back(latency);
  }
  const TrialReport report = Assess(trial);
  EXPECT_EQ(report.latency_p50_ms, 10);
  EXPECT_GT(report.latency_p99_ms, 149);
  EXPECT_EQ(report.latency_short_p99_ms, 10);
  EXPECT_EQ(report.slowest[Stage::kVerify], std::chrono::milliseconds(30)) << "of the two of 400";
}

}  // namespace
}  // namespace loopfleet::client
