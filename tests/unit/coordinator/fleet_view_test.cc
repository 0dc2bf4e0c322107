#include "coordinator/fleet_view.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

std::vector<std::string> KindsOf(const wire::FleetInfo& fleet) {
  std::vector<std::string> kinds;
  for (const auto& event : fleet.events) kinds.push_back(event.kind);
  return kinds;
}

class FleetViewTest : public testing::Test {
 protected:
  wire::FleetInfo Look() const { return view_.Complete({.epoch = 3}, {.max_events = 1'000}); }

  const SystemClock clock_;
  FleetView view_{clock_, {.version = "1.2.3"}};
};

TEST_F(FleetViewTest, CountsJobsByWhatBecameOfThem) {
  view_.SetHttp("127.0.0.1:9");
  view_.Accepted({.count = 5, .batch = BatchId{1}});
  view_.Accepted({.count = 2, .first_index = 5, .batch = BatchId{1}});
  view_.Accepted({.count = 1});  // an audit of the coordinator's own
  view_.Finished({});
  view_.Finished({.source = OutcomeSource::kStored});
  view_.Finished({.source = OutcomeSource::kCoalesced});
  view_.Finished({.failure = FailureCode::kRunCrash});
  view_.Finished({.failure = FailureCode::kRunCrash, .source = OutcomeSource::kStored});
  const wire::FleetInfo fleet = Look();
  EXPECT_EQ(fleet.epoch, 3U);  // what the core says stays
  EXPECT_EQ(fleet.version, "1.2.3");
  EXPECT_EQ(fleet.http, "127.0.0.1:9");
  EXPECT_EQ(fleet.accepted_jobs, 8U);
  EXPECT_EQ(fleet.finished_jobs, 5U);
  EXPECT_EQ(fleet.failed_jobs, 2U);
  EXPECT_EQ(fleet.shared_jobs, 2U);
  ASSERT_EQ(fleet.failures.size(), 1U);
  EXPECT_EQ(fleet.failures[0], (wire::FailureCount{.code = "RUN_CRASH", .count = 2}));
  EXPECT_EQ(KindsOf(fleet), (std::vector<std::string>{"batch.accepted"}));
}

TEST_F(FleetViewTest, TellsWhatHappened) {
  view_.Recovered(3, 1, 20);
  view_.Changed({.change = WorkerChange::kJoined, .name = "w"});
  view_.Changed({.change = WorkerChange::kLost, .name = "w", .leases = 4});
  view_.BatchFinished({.batch = BatchId{9}, .jobs = 20});
  view_.BatchFinished({.batch = BatchId{10}, .jobs = 2, .cancelled = true});
  view_.Implausible({.worker = "w", .job = {}, .reason = "too quick"});
  view_.Disagreed({.failed = "w", .measured = "v", .job = {}});
  view_.SetStorageFull(false);  // as it was
  view_.SetStorageFull(true);
  view_.SetStorageFull(true);
  view_.SetStorageFull(false);
  view_.Stopping();
  const wire::FleetInfo fleet = Look();
  EXPECT_EQ(KindsOf(fleet),
            (std::vector<std::string>{"coordinator.started", "worker.joined", "worker.lost",
                                      "batch.finished", "batch.cancelled", "report.implausible",
                                      "workers.disagreed", "storage.full", "storage.has_room",
                                      "coordinator.stopping"}));
  EXPECT_EQ(fleet.events[2].subject, "w");
  EXPECT_EQ(fleet.events[2].count, 4U);
  EXPECT_EQ(fleet.events[3].batch, BatchId{9});
  EXPECT_EQ(fleet.events[3].count, 20U);
  EXPECT_EQ(fleet.last_event, 10U);
}

}  // namespace
}  // namespace loopfleet::coordinator
