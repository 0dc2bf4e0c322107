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
  const FleetSnapshot seen = SnapshotOf(*world.core, tally, world.now);
  ASSERT_EQ(seen.workers.size(), 1U);
  EXPECT_EQ(seen.workers[0].leased_jobs, 2U);
  EXPECT_EQ(seen.leased, 2U);
  EXPECT_EQ(seen.queued[static_cast<std::size_t>(Placement::kCpu)], 2U);
  EXPECT_EQ(seen.running_batches, 1U);
  ASSERT_EQ(seen.unserved.size(), 1U);
  EXPECT_NE(seen.unserved[0].find("huge"), std::string::npos) << seen.unserved[0];
  EXPECT_EQ(seen.tally.accepted(), 4U);
  EXPECT_EQ(seen.returning_ms, 0U);
}

TEST(SnapshotBoard, ShowsTheNewestAndSaysWhenAnotherIsDue) {
  SnapshotBoard board;
  EXPECT_EQ(board.newest(), nullptr);
  const Instant now(seconds(5));
  EXPECT_TRUE(board.IsDue(now));
  board.Show({.at = {.instant = now}, .epoch = 1});
  const auto first = board.newest();
  EXPECT_FALSE(board.IsDue(now + SnapshotBoard::kPeriod / 2));
  EXPECT_TRUE(board.IsDue(now + SnapshotBoard::kPeriod));
  board.Show({.at = {.instant = now + seconds(1)}, .epoch = 2});
  EXPECT_EQ(board.newest()->epoch, 2U);
  EXPECT_EQ(first->epoch, 1U);  // a held snapshot stays valid
}

}  // namespace
}  // namespace loopfleet::coordinator
