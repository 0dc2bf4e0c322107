#include "coordinator/shell/job_steps.h"

#include <gtest/gtest.h>

#include <chrono>

namespace loopfleet::coordinator {
namespace {

using namespace std::chrono_literals;

class JobStepsTest : public ::testing::Test {
 protected:
  // Finishes `finished` jobs, of which `failed` fail, lets `time` pass, and adds the counts.
  void Pass(Nanos time, int finished, int failed = 0) {
    for (int i = 0; i < finished; ++i) {
      FinishedJob end;
      if (i < failed) end.failure = FailureCode::kRunCrash;
      tally_.Count(JobsWereFinished{{end}});
    }
    now_.instant += time;
    now_.wall += time;
    steps_.Add(tally_, now_);
  }

  Moment now_{.instant = Instant(1000s), .wall = WallTime(1000s)};
  Tally tally_;
  JobSteps steps_;
};

TEST_F(JobStepsTest, CountsWhatEndsInEachStep) {
  Pass(0s, 7);  // before the first snapshot
  for (int i = 0; i < 10; ++i) Pass(500ms, 3, 1);
  ASSERT_EQ(steps_.steps().size(), 1U);
  EXPECT_EQ(steps_.steps()[0].finished, 30U);
  EXPECT_EQ(steps_.steps()[0].failed, 10U);
  EXPECT_EQ(steps_.end(), now_.wall);
}

TEST_F(JobStepsTest, SpreadsWhatAStallHidAndLosesNothing) {
  Pass(0s, 0);
  Pass(23s, 101);
  ASSERT_EQ(steps_.steps().size(), 4U);
  EXPECT_EQ(steps_.Last(20s).finished, 101U);
  for (const auto& step : steps_.steps()) {
    EXPECT_GE(step.finished, 25U);
    EXPECT_LE(step.finished, 26U);
  }
}

TEST_F(JobStepsTest, KeepsAQuarterOfAnHour) {
  Pass(0s, 0);
  for (int i = 0; i < 400; ++i) Pass(5s, i);
  EXPECT_EQ(steps_.steps().size(), JobSteps::kSteps);
  EXPECT_EQ(steps_.steps().back().finished, 399U);
  EXPECT_EQ(steps_.steps().front().finished, 400 - JobSteps::kSteps);
  Pass(5h, 0);
  EXPECT_EQ(steps_.steps().size(), JobSteps::kSteps);
}

}  // namespace
}  // namespace loopfleet::coordinator
