#include "coordinator/shell/fleet_record.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

std::vector<std::string> KindsOf(const wire::FleetInfo& fleet) {
  std::vector<std::string> kinds;
  for (const auto& event : fleet.events) kinds.push_back(event.kind);
  return kinds;
}

class FleetRecordTest : public testing::Test {
 protected:
  wire::FleetInfo Look() const { return record_.Complete({.epoch = 3}, {.max_events = 1'000}); }

  const SystemClock clock_;
  FleetRecord record_{clock_, {.version = "1.2.3"}};
};

TEST_F(FleetRecordTest, CountsJobsByWhatBecameOfThem) {
  record_.SetHttp("127.0.0.1:9");
  record_.Accepted(
      {.count = 4, .batch = BatchId{1}, .batch_jobs = 4, .end = wire::BatchEnd::kMoreFollows});
  record_.Accepted({.count = 1,
                    .first_index = 4,
                    .batch = BatchId{1},
                    .batch_jobs = 5,
                    .end = wire::BatchEnd::kMoreFollows});
  record_.Accepted({.count = 2, .first_index = 5, .batch = BatchId{1}, .batch_jobs = 7});
  record_.Accepted({.count = 1});  // an internal batch
  record_.Finished({});
  record_.Finished({.source = OutcomeSource::kStored});
  record_.Finished({.source = OutcomeSource::kCoalesced});
  record_.Finished({.failure = FailureCode::kRunCrash});
  record_.Finished({.failure = FailureCode::kRunCrash, .source = OutcomeSource::kStored});
  const wire::FleetInfo fleet = Look();
  EXPECT_EQ(fleet.epoch, 3U);  // the core's fields are unchanged
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

TEST_F(FleetRecordTest, TellsWhatHappened) {
  record_.Recovered(3, 1, 20);
  record_.Changed({.change = WorkerChange::kJoined, .name = "w"});
  record_.Changed({.change = WorkerChange::kLost, .name = "w", .leases = 4});
  record_.BatchFinished({.batch = BatchId{9}, .jobs = 20});
  record_.BatchFinished({.batch = BatchId{10}, .jobs = 2, .cancelled = true});
  record_.Implausible({.worker = "w", .job = {}, .reason = "too quick"});
  record_.Disagreed({.failed = "w", .measured = "v", .job = {}});
  record_.SetStorageFull(false);  // unchanged
  record_.SetStorageFull(true);
  record_.SetStorageFull(true);
  record_.SetStorageFull(false);
  record_.Stopping();
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
