// What the core shows of the fleet and of batches.

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

wire::FleetInfo Look(Harness& h) {
  h.shown_fleets.clear();
  h.Ask("c", wire::ShowFleet{.after_event = 4, .max_events = 5});
  EXPECT_EQ(h.shown_fleets.size(), 1U);
  EXPECT_EQ(h.shown_fleets[0].question.after_event, 4U);  // answered by the shell
  return FleetInfoOf(h.shown_fleets[0].fleet);
}

TEST(ShowFleet, CountsJobsAndWorkersWhereTheyAre) {
  Harness h;
  h.ClientHello("c", 1);
  wire::FleetInfo fleet = Look(h);
  EXPECT_EQ(fleet.epoch, 1U);
  EXPECT_EQ(fleet.workers_ready + fleet.workers_lost, 0U);
  EXPECT_FALSE(fleet.stopping);

  const auto number =
      h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3, .placement = Placement::kCuda}});
  h.Write();
  h.MustAccept("c", number);
  h.WorkerHello("w", 1);
  h.Pass(seconds(10));  // past the grace for returning workers
  h.Heartbeat("w");
  fleet = Look(h);
  EXPECT_EQ(fleet.queued_cpu + fleet.queued_any + fleet.queued_cuda + fleet.leased_jobs, 3U);

  h.Give(DrainRequested{});
  EXPECT_TRUE(Look(h).stopping);
}

TEST(ShowFleet, AReportThatWaitsForTheDiskIsNoLeasedJob) {
  OneLease h;
  EXPECT_EQ(Look(h).leased_jobs, 1U);
  h.Report("w", h.lease);
  ASSERT_FALSE(h.unwritten.empty());
  EXPECT_EQ(Look(h).leased_jobs, 0U);
}

TEST(ShowFleet, ABatchThatIsOverIsSaidOnce) {
  Harness h;
  h.ClientHello("c", 1);
  h.observations.clear();
  const auto number = h.Submit("c", {{.tree = 1, .stored = true}, {.tree = 2, .stored = true}});
  h.Write();
  const BatchId batch = h.MustAccept("c", number).batch;
  h.Write();
  h.Pass(seconds(1));
  std::vector<BatchWasFinished> finished;
  std::vector<JobsWereAccepted> accepted;
  for (const Observation& one : h.observations) {
    if (const auto* over = std::get_if<BatchWasFinished>(&one)) finished.push_back(*over);
    if (const auto* jobs = std::get_if<JobsWereAccepted>(&one)) accepted.push_back(*jobs);
  }
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].batch, batch);
  EXPECT_EQ(finished[0].jobs, 2U);
  EXPECT_FALSE(finished[0].cancelled);
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_EQ(accepted[0].batch, batch);
  EXPECT_EQ(accepted[0].count, 2U);
  EXPECT_EQ(accepted[0].batch_jobs, 2U);
  EXPECT_EQ(accepted[0].end, wire::BatchEnd::kComplete);
}

}  // namespace
}  // namespace loopfleet::coordinator
