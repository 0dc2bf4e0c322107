#include "coordinator/shell/fleet_snapshot.h"

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

TEST(FleetSnapshot, IsWhatTheCoreKnows) {
  Harness world;
  world.Pass(seconds(30));  // the time to reattach is over
  world.WorkerHello("w1", 1, {.credit = 2, .labels = {"big"}});
  world.ClientHello("c", 1);
  const auto request =
      world.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}, {.tree = 4, .labels = {"huge"}}});
  world.Write();
  world.MustAccept("c", request);
  Tally tally;
  tally.Count(JobsWereAccepted{.count = 4});
  const SystemClock clock;
  FleetStatus status(clock, {});
  status.SetStorageTrouble(ErrorKind::kFull);
  const FleetSnapshot seen = SnapshotOf(*world.core, status, tally, world.now);
  ASSERT_EQ(seen.fleet.workers.size(), 1U);
  EXPECT_EQ(seen.fleet.workers[0].leased_jobs, 2U);
  EXPECT_EQ(seen.fleet.leased, 2U);
  EXPECT_EQ(seen.fleet.queued[static_cast<std::size_t>(Placement::kCpu)], 2U);
  EXPECT_EQ(seen.fleet.running_batches, 1U);
  EXPECT_EQ(seen.fleet.unserved_jobs, 1U);
  ASSERT_EQ(seen.fleet.unserved_reasons.size(), 1U);
  EXPECT_NE(seen.fleet.unserved_reasons[0].find("huge"), std::string::npos);
  EXPECT_EQ(seen.fleet.storage_trouble, ErrorKind::kFull);
  EXPECT_EQ(seen.tally.accepted(), 4U);
  EXPECT_EQ(seen.returning_ms, 0U);
}

TEST(Tally, ACancelledOrCutJobIsNoFailure) {
  Tally tally;
  tally.Count(JobsWereFinished{.jobs = {{.failure = FailureCode::kCancelled},
                                        {.failure = FailureCode::kCut},
                                        {.failure = FailureCode::kRunCrash},
                                        {}}});
  EXPECT_EQ(tally.finished(), 4U);
  EXPECT_EQ(tally.judged(), 2U);
  EXPECT_EQ(tally.failed(), 1U);
}

TEST(SnapshotBoard, ShowsTheNewestAndSaysWhenAnotherIsDue) {
  SnapshotBoard board;
  EXPECT_EQ(board.newest(), nullptr);
  const Instant now(seconds(5));
  EXPECT_TRUE(board.IsDue(now));
  board.Show({.at = {.instant = now}, .fleet = {.epoch = 1}});
  const auto first = board.newest();
  EXPECT_FALSE(board.IsDue(now + SnapshotBoard::kPeriod / 2));
  EXPECT_TRUE(board.IsDue(now + SnapshotBoard::kPeriod));
  board.Show({.at = {.instant = now + seconds(1)}, .fleet = {.epoch = 2}});
  EXPECT_EQ(board.newest()->fleet.epoch, 2U);
  EXPECT_EQ(first->fleet.epoch, 1U);  // a held snapshot stays valid
}

}  // namespace
}  // namespace loopfleet::coordinator
