#include "coordinator/page/fleet_page.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/clock.h"
#include "tests/unit/storage/scratch_database.h"
#include "tests/unit/storage/wide_outcomes.h"

namespace loopfleet::coordinator {
namespace {

using FleetPageTest = storage::ScratchDatabase;

TEST_F(FleetPageTest, TheOutcomesOfABatchComeWithoutTheirObservedValues) {
  constexpr std::uint32_t kJobs = 100;
  const auto store = OpenStore();
  ASSERT_TRUE(store->Apply(storage::WideOutcomes(kJobs)));
  SnapshotBoard board;
  const SystemClock clock;
  const auto page = FleetPage::Start({.board = board,
                                      .clock = clock,
                                      .store = *store,
                                      .health = [] { return wire::FleetHealth{}; },
                                      .version = "test"})
                        .value();
  const auto reply = page->Answer({.path = "/api/batch/1"});
  EXPECT_EQ(reply.status, 200);
  EXPECT_LT(reply.body->size(), 1'000'000U);
  const Json batch = Json::parse(*reply.body);
  ASSERT_EQ(batch["outcomes"].size(), kJobs);
  for (const Json& row : batch["outcomes"]) {
    EXPECT_EQ(row["status"], "ok");
    EXPECT_FALSE(row.contains("observed"));
  }
  const auto one = Json::parse(*page->Answer({.path = "/api/job/1.99"}).body);
  EXPECT_EQ(one["outcome"]["observed"]["Ir"].get<std::string>().size(), 400'000U);
}

}  // namespace
}  // namespace loopfleet::coordinator
