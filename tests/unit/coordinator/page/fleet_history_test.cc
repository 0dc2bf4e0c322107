#include "coordinator/page/fleet_history.h"

#include <gtest/gtest.h>

#include <chrono>

namespace loopfleet::coordinator {
namespace {

using namespace std::chrono_literals;

class FleetHistoryTest : public ::testing::Test {
 protected:
  // Finishes `finished` jobs, of which `failed` fail, lets `time` pass, and adds a snapshot.
  void Pass(Nanos time, int finished, int failed = 0) {
    for (int i = 0; i < finished; ++i) {
      FinishedJob end;
      if (i < failed) end.failure = FailureCode::kRunCrash;
      snapshot_.tally.Count(JobsWereFinished{{end}});
    }
    snapshot_.at.instant += time;
    snapshot_.at.wall += time;
    history_.Add(snapshot_, batches_);
  }

  FleetSnapshot snapshot_{.at = {.instant = Instant(1000s), .wall = WallTime(1000s)}};
  std::vector<storage::StoredBatch> batches_;
  FleetHistory history_;
};

TEST_F(FleetHistoryTest, CountsWhatEndsInEachStep) {
  Pass(0s, 7);  // before the first snapshot
  for (int i = 0; i < 10; ++i) Pass(500ms, 3, 1);
  ASSERT_EQ(history_.steps().size(), 1U);
  EXPECT_EQ(history_.steps()[0].finished, 30U);
  EXPECT_EQ(history_.steps()[0].failed, 10U);
  EXPECT_EQ(history_.steps_end(), snapshot_.at.wall);
}

TEST_F(FleetHistoryTest, SpreadsWhatAStallHidAndLosesNothing) {
  Pass(0s, 0);
  Pass(23s, 101);
  ASSERT_EQ(history_.steps().size(), 4U);
  EXPECT_EQ(history_.Last(4).finished, 101U);
  for (const auto& step : history_.steps()) {
    EXPECT_GE(step.finished, 25U);
    EXPECT_LE(step.finished, 26U);
  }
}

TEST_F(FleetHistoryTest, KeepsAQuarterOfAnHour) {
  Pass(0s, 0);
  for (int i = 0; i < 400; ++i) Pass(5s, i);
  EXPECT_EQ(history_.steps().size(), FleetHistory::kSteps);
  EXPECT_EQ(history_.steps().back().finished, 399U);
  EXPECT_EQ(history_.steps().front().finished, 400 - FleetHistory::kSteps);
  Pass(5h, 0);
  EXPECT_EQ(history_.steps().size(), FleetHistory::kSteps);
}

TEST_F(FleetHistoryTest, TheSameSnapshotTwiceIsOne) {
  Pass(0s, 0);
  Pass(1s, 10);
  const double rate = history_.JobsPerSecond();
  history_.Add(snapshot_, batches_);
  EXPECT_EQ(history_.JobsPerSecond(), rate);
  EXPECT_EQ(rate, 10);
}

TEST_F(FleetHistoryTest, ARateIsOfTheLastTwentySeconds) {
  EXPECT_EQ(history_.JobsPerSecond(), 0);
  Pass(0s, 0);
  for (int i = 0; i < 100; ++i) Pass(1s, 50);
  EXPECT_DOUBLE_EQ(history_.JobsPerSecond(), 50);
  for (int i = 0; i < 21; ++i) Pass(1s, 0);
  EXPECT_DOUBLE_EQ(history_.JobsPerSecond(), 0);
}

TEST_F(FleetHistoryTest, BatchesHaveRatesOfTheirOwn) {
  batches_ = {{.batch = {1}, .job_count = 100}, {.batch = {2}, .job_count = 100}};
  Pass(0s, 0);
  EXPECT_EQ(history_.JobsPerSecond(BatchId{1}), std::nullopt);
  batches_[0].finished = 30;
  Pass(10s, 30);
  EXPECT_EQ(history_.JobsPerSecond(BatchId{1}), 3);
  EXPECT_EQ(history_.JobsPerSecond(BatchId{2}), 0);
  EXPECT_EQ(history_.JobsPerSecond(BatchId{3}), std::nullopt);
  batches_.erase(batches_.begin());  // no longer shown
  Pass(1s, 0);
  EXPECT_EQ(history_.JobsPerSecond(BatchId{1}), std::nullopt);
}

TEST_F(FleetHistoryTest, KeepsTheCanariesOfWorkersThatAreThere) {
  const Uuid worker = Uuid::Random();
  snapshot_.workers = {{.worker = worker, .canary_ratio = 1.25}};
  for (int i = 0; i < 1000; ++i) Pass(500ms, 0);
  EXPECT_EQ(history_.CanariesOf(worker).size(), 100U);  // one per five seconds
  EXPECT_EQ(history_.CanariesOf(worker).back().ratio, 1.25);
  snapshot_.workers[0].state = wire::WorkerState::kLost;
  for (int i = 0; i < 20; ++i) Pass(5s, 0);
  EXPECT_EQ(history_.CanariesOf(worker).size(), 100U);  // a lost worker reports none
  snapshot_.workers.clear();
  Pass(5s, 0);
  EXPECT_TRUE(history_.CanariesOf(worker).empty());
}

}  // namespace
}  // namespace loopfleet::coordinator
