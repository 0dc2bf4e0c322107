#include "coordinator/shell/fleet_status.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

std::vector<std::string> KindsOf(const wire::FleetInfo& fleet) {
  std::vector<std::string> kinds;
  for (const auto& event : fleet.events) kinds.push_back(event.kind);
  return kinds;
}

class FleetStatusTest : public testing::Test {
 protected:
  wire::FleetInfo Look() const { return status_.Complete({.epoch = 3}, {.max_events = 1'000}); }

  const SystemClock clock_;
  FleetStatus status_{clock_, {.version = "1.2.3"}};
};

TEST_F(FleetStatusTest, CountsJobsByWhatBecameOfThem) {
  status_.SetHttp("127.0.0.1:9");
  status_.Accepted(
      {.count = 4, .batch = BatchId{1}, .batch_jobs = 4, .end = wire::BatchEnd::kMoreFollows});
  status_.Accepted({.count = 1,
                    .first_index = 4,
                    .batch = BatchId{1},
                    .batch_jobs = 5,
                    .end = wire::BatchEnd::kMoreFollows});
  status_.Accepted({.count = 2, .first_index = 5, .batch = BatchId{1}, .batch_jobs = 7});
  status_.Accepted({.count = 1});  // an internal batch
  status_.Finished({});
  status_.Finished({.source = OutcomeSource::kStored});
  status_.Finished({.source = OutcomeSource::kCoalesced});
  status_.Finished({.failure = FailureCode::kRunCrash});
  status_.Finished({.failure = FailureCode::kRunCrash, .source = OutcomeSource::kStored});
  const wire::FleetInfo fleet = Look();
  EXPECT_EQ(fleet.epoch, 3U);  // the core's fields
  EXPECT_EQ(fleet.version, "1.2.3");
  EXPECT_EQ(fleet.http, "127.0.0.1:9");
  EXPECT_EQ(fleet.accepted_jobs, 8U);
  EXPECT_EQ(fleet.finished_jobs, 5U);
  EXPECT_EQ(fleet.failed_jobs, 2U);
  EXPECT_EQ(fleet.shared_jobs, 2U);
  ASSERT_EQ(fleet.failures.size(), 1U);
  EXPECT_EQ(fleet.failures[0], (wire::FailureCount{.code = "RUN_CRASH", .count = 2}));
  // A batch in several messages: its first message, and its end.
  EXPECT_EQ(KindsOf(fleet), (std::vector<std::string>{"batch.opened", "batch.accepted"}));
  EXPECT_EQ(fleet.events[0].count, 4U);
  EXPECT_EQ(fleet.events[1].count, 7U);
}

TEST_F(FleetStatusTest, TellsWhatHappened) {
  status_.Recovered(3, 1, 20);
  status_.Changed({.change = WorkerChange::kJoined, .name = "w"});
  status_.Changed({.change = WorkerChange::kLost, .name = "w", .leases = 4});
  status_.BatchFinished({.batch = BatchId{9}, .jobs = 20});
  status_.BatchFinished({.batch = BatchId{10}, .jobs = 2, .cancelled = true});
  status_.Implausible({.worker = "w", .job = {}, .reason = "too quick"});
  status_.Disagreed({.failed = "w", .measured = "v", .job = {}});
  status_.SetStorageTrouble(std::nullopt);  // unchanged
  status_.SetStorageTrouble(ErrorKind::kFull);
  status_.SetStorageTrouble(ErrorKind::kFull);
  status_.SetStorageTrouble(std::nullopt);
  status_.Stopping();
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
