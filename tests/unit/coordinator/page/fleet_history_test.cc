#include "coordinator/page/fleet_history.h"

#include <gtest/gtest.h>

#include <chrono>

namespace loopfleet::coordinator {
namespace {

using namespace std::chrono_literals;

class FleetHistoryTest : public ::testing::Test {
 protected:
  // Finishes `finished` jobs, lets `time` pass, and adds a snapshot.
  void Pass(Nanos time, int finished) {
    for (int i = 0; i < finished; ++i) snapshot_.tally.Count(JobsWereFinished{{FinishedJob{}}});
    snapshot_.at.instant += time;
    snapshot_.at.wall += time;
    history_.Add(snapshot_, batches_);
  }

  FleetSnapshot snapshot_{.at = {.instant = Instant(1000s), .wall = WallTime(1000s)}};
  std::vector<storage::StoredBatch> batches_;
  FleetHistory history_;
};

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

TEST_F(FleetHistoryTest, NamesClientsByTheirKeys) {
  wire::AuthorizedKeys keys;
  const wire::Principal alice{.role = wire::Role::kClient, .name = "alice"};
  const wire::Principal node{.role = wire::Role::kWorker, .name = "node1"};
  keys.Add(wire::PublicKey{}, alice);
  EXPECT_EQ(NamesOf(keys), (ClientNames{{ClientIdOf(alice), "alice"}}));
  const Uuid stranger = Uuid::Random();
  EXPECT_EQ(history_.NameOf(stranger), stranger.ToString().substr(0, 12));
  snapshot_.client_names = std::make_shared<const ClientNames>(NamesOf(keys));
  Pass(1s, 0);
  EXPECT_EQ(history_.NameOf(ClientIdOf(alice)), "alice");
  EXPECT_EQ(history_.NameOf(ClientIdOf(node)), ClientIdOf(node).ToString().substr(0, 12));
  EXPECT_EQ(history_.NameOf(Uuid{}), "coordinator");
}

TEST_F(FleetHistoryTest, KeepsTheCanariesOfWorkersThatAreThere) {
  const Uuid worker = Uuid::Random();
  snapshot_.fleet.workers = {{.worker = worker, .canary_ratio = 1.25}};
  for (int i = 0; i < 1000; ++i) Pass(500ms, 0);
  EXPECT_EQ(history_.CanariesOf(worker).size(), 100U);  // one per five seconds
  EXPECT_EQ(history_.CanariesOf(worker).back().ratio, 1.25);
  snapshot_.fleet.workers[0].state = wire::WorkerState::kLost;
  for (int i = 0; i < 20; ++i) Pass(5s, 0);
  EXPECT_EQ(history_.CanariesOf(worker).size(), 100U);  // a lost worker reports none
  snapshot_.fleet.workers.clear();
  Pass(5s, 0);
  EXPECT_TRUE(history_.CanariesOf(worker).empty());
}

}  // namespace
}  // namespace loopfleet::coordinator
