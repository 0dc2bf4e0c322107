#include "monitoring/labelled_metric.h"

#include <gtest/gtest.h>

#include <string>

#include "monitoring/metrics.h"
#include "monitoring/registry.h"

namespace loopfleet::monitoring {
namespace {

TEST(LabelledCounter, KnownValuesStartAtZeroAndUnknownOnesShareOneSeries) {
  Registry registry;
  WorkerMetrics metrics(
      registry,
      {.outcomes = {"ok"}, .stages = {}, .children = {"compiler"}, .restart_reasons = {}});
  EXPECT_NE(registry.ToText().find("loopfleet_worker_jobs_completed_total{outcome=\"ok\"} 0\n"),
            std::string::npos);
  for (int i = 0; i < 100; ++i) metrics.JobCompleted("made up " + std::to_string(i));
  const std::string text = registry.ToText();
  EXPECT_NE(text.find("loopfleet_worker_jobs_completed_total{outcome=\"other\"} 100\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("made up"), std::string::npos);
}

TEST(LabelledCounterDeathTest, NeedsACellForUnknownValues) {
  EXPECT_DEATH(LabelledCounter(LabelledCounter::Cells{}), "no cell for unknown values");
}

}  // namespace
}  // namespace loopfleet::monitoring
