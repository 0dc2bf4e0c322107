#include "coordinator/page/fleet_page.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "storage/record.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::coordinator {
namespace {

using FleetPageTest = storage::ScratchDatabase;

TEST_F(FleetPageTest, TheOutcomesOfABatchComeWithoutTheirObservedValues) {
  constexpr std::uint32_t kJobs = 100;
  const auto store = OpenStore();
  storage::JobsAccepted accepted{
      .batch = {1}, .client = Uuid::Random(), .request_id = Uuid::Random()};
  accepted.jobs.resize(kJobs, {.source = looptree::BenchmarkUri{"generator://csmith-v0/0"}});
  storage::JobFinished first{.outcome = {.job = {.batch = {1}}, .sequence = 1}};
  first.outcome.evaluation.verdict = Observed{.values = {{"Ir", std::string(400'000, 'x')}}};
  first.outcome.evaluation.subject.emplace();
  first.outcome.evaluation.conditions.emplace();
  storage::JobsAnswered others;
  const auto answer = std::make_shared<const storage::StoredResult>(
      storage::StoredResult{.evaluation = {.verdict = Observed{}}, .row = -1});
  for (std::uint32_t i = 1; i < kJobs; ++i) {
    others.jobs.push_back({.job = {{1}, i}, .sequence = i + 1, .answer = answer});
  }
  ASSERT_TRUE(store->Apply(std::vector<storage::Write>{accepted, first, others}));
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
