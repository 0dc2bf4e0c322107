#include "client/cli/text/host_trial_text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/unit/client/trial_figure.h"

namespace loopfleet::client {
namespace {

using monitoring::Severity;

TEST(HostTrialText, SaysWhichDifferenceTheHostShows) {
  const auto finding = [](double other, Grade grade) {
    return FindingOf(Assess({.figures = {Figure(0, 0, 100), Figure(0, 1, other, grade),
                                         Figure(0, 2, 100, Grade::kA, true)},
                             .latencies = {{.ms = 9, .run_ms = 0.1}},
                             .peaks = {100, 100}}));
  };
  const monitoring::Finding good = finding(101, Grade::kA);
  EXPECT_EQ(good.severity, Severity::kGood) << good.why;
  EXPECT_NE(good.what.find("differ by 1.0 % or more"), std::string::npos) << good.what;
  const std::string latency =
      "one at a time 9 ms (99 of 100: 9 ms; of kernels of 1 ms or less: 9 ms)";
  EXPECT_NE(good.why.find(latency), std::string::npos) << good.why;
  EXPECT_EQ(finding(130, Grade::kB).severity, Severity::kProblem);
  EXPECT_EQ(finding(130, Grade::kC).severity, Severity::kNotice)
      << "a third of the figures is of C";
  const monitoring::Finding none = FindingOf(Assess({.figures = {Figure(0, 0, 100)}, .failed = 2}));
  EXPECT_EQ(none.severity, Severity::kProblem);
  EXPECT_EQ(none.why, "1 figure of 1 start: A 100 %; 2 evaluations failed");
  EXPECT_EQ(FindingOf(Assess({.failed = 9})).why, "0 figures of 0 starts; 9 evaluations failed");
}

TEST(HostTrialText, JsonHasNullWhereThereWereNoPairs) {
  const Json json = TrialJson(Assess({.figures = {Figure(0, 0, 100)}}));
  EXPECT_TRUE(json["coverage"].is_null());
  EXPECT_TRUE(json["grades"]["A"]["differences"].is_null());
  EXPECT_EQ(json["grades"]["A"]["share"], 1.0);
  EXPECT_TRUE(json["latency_p99_ms"].is_null());
}

TEST(HostTrialText, JsonSaysWhereTheSlowestSpentTheirTime) {
  TrialLatency slow{.ms = 500};
  slow.stages[Stage::kMeasure] = std::chrono::milliseconds(450);
  const Json json = TrialJson(Assess({.latencies = {{.ms = 9}, slow}}));
  EXPECT_EQ(json["slowest_hundredth_ms"]["measure"], 450.0);
  EXPECT_EQ(json["slowest_hundredth_ms"]["compile"], 0.0);
}

}  // namespace
}  // namespace loopfleet::client
