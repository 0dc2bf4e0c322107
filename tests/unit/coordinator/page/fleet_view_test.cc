#include "coordinator/page/fleet_view.h"

#include <gtest/gtest.h>

#include <chrono>

#include "common/fleet/attention.h"

namespace loopfleet::coordinator {
namespace {

using namespace std::chrono_literals;
using wire::WorkerState;

storage::BriefOutcome Ok(std::uint32_t index, const std::string& benchmark, double gflops) {
  return {.job = {{1}, index},
          .benchmark = benchmark,
          .actions = "down",
          .worker = "w",
          .hardware_class = "c",
          .finished_at = WallTime(std::chrono::seconds(index)),
          .took = 10ms * (index + 1),
          .measure = 2ms,
          .is_measured = true,
          .figures = storage::BriefOutcome::Figures{.gflop_per_second = gflops,
                                                    .elapsed_ns = 1000,
                                                    .spread = 0.001 * (index + 1),
                                                    .grade = "A"}};
}

storage::BriefOutcome Failed(std::uint32_t index, FailureCode code) {
  return {.job = {{1}, index},
          .benchmark = "b",
          .worker = "w",
          .finished_at = WallTime(std::chrono::seconds(index)),
          .took = 1ms,
          .failure = storage::BriefOutcome::Failed{.code = code, .message = "it is so"}};
}

TEST(Digest, TheBestOfEachBenchmarkThatIsTrusted) {
  auto doubted = Ok(3, "b", 99);
  doubted.figures->is_suspect = true;
  auto elsewhere = Ok(4, "b", 7);
  elsewhere.hardware_class = "d";
  const auto digest = Digest({.outcomes = {Ok(0, "b", 10), Ok(1, "b", 30), Ok(2, "b", 20), doubted,
                                           elsewhere, Ok(5, "a", 5), Ok(6, "", 1000)},
                              .is_all = true});
  ASSERT_EQ(digest.best.size(), 3U);
  EXPECT_EQ(digest.best[0]["benchmark"], "a");
  EXPECT_EQ(digest.best[1]["job"], "1.1");
  EXPECT_EQ(digest.best[1]["gflop_per_second"], 30.0);
  EXPECT_EQ(digest.best[1]["outcomes"], 3);
  EXPECT_EQ(digest.best[2]["hardware_class"], "d");
  EXPECT_TRUE(digest.is_all);
}

TEST(Digest, TheBestThatGainedMostOverTheUntunedComesFirst) {
  const auto untuned = [](storage::BriefOutcome outcome) {
    outcome.actions = "";
    return outcome;
  };
  auto doubted = untuned(Ok(0, "a", 5));
  doubted.figures->is_suspect = true;
  const auto digest =
      Digest({.outcomes = {doubted, Ok(1, "a", 100), untuned(Ok(2, "b", 10)), Ok(3, "b", 15),
                           untuned(Ok(4, "c", 10)), Ok(5, "c", 30), untuned(Ok(6, "c", 9))}});
  ASSERT_EQ(digest.best.size(), 3U);
  EXPECT_EQ(digest.best[0]["benchmark"], "c");
  EXPECT_EQ(digest.best[0]["untuned_gflop_per_second"], 10.0);
  EXPECT_EQ(digest.best[1]["benchmark"], "b");
  EXPECT_EQ(digest.best[2]["benchmark"], "a");
  EXPECT_TRUE(digest.best[2]["untuned_gflop_per_second"].is_null());  // the only one is doubted
}

TEST(Digest, FailuresTheMostFrequentFirstWithTheNewestOfEach) {
  const auto digest =
      Digest({.outcomes = {Failed(0, FailureCode::kRunCrash), Failed(9, FailureCode::kWrongOutput),
                           Failed(7, FailureCode::kWrongOutput)}});
  ASSERT_EQ(digest.failures.size(), 2U);
  EXPECT_EQ(digest.failures[0]["code"], "WRONG_OUTPUT");
  EXPECT_EQ(digest.failures[0]["jobs"], 2);
  EXPECT_EQ(digest.failures[0]["newest"]["job"], "1.9");
  EXPECT_EQ(digest.failures[1]["code"], "RUN_CRASH");
  EXPECT_FALSE(digest.is_all);
}

TEST(Digest, NoiseIsOfMeasurementsAlone) {
  auto answered = Ok(4, "b", 1);
  answered.is_measured = false;
  const auto digest = Digest({.outcomes = {Ok(0, "b", 1), Ok(1, "b", 1), Ok(2, "b", 1), answered,
                                           Failed(3, FailureCode::kCut)}});
  EXPECT_EQ(digest.by_worker["w"]["measured"], 3);
  EXPECT_DOUBLE_EQ(digest.by_worker["w"]["spread"].get<double>(), 0.002);
  EXPECT_DOUBLE_EQ(digest.by_worker["w"]["measure_ms"].get<double>(), 2);
  EXPECT_EQ(digest.by_worker["w"]["grades"]["A"], 3);
  EXPECT_EQ(digest.pools["c"], digest.by_worker["w"]);
}

TEST(Digest, OfNothing) {
  const auto digest = Digest({});
  EXPECT_TRUE(digest.best.empty());
  EXPECT_TRUE(digest.turnaround["p50_ms"].is_null());
}

class OverviewTest : public ::testing::Test {
 protected:
  wire::WorkerInfo& AddWorker(const std::string& name, WorkerState state,
                              std::uint32_t leased = 0) {
    snapshot_.fleet.workers.push_back({.worker = Uuid::Random(),
                                       .name = name,
                                       .state = state,
                                       .leased_jobs = leased,
                                       .hardware = {.hardware_class = "class", .model = "model"}});
    return snapshot_.fleet.workers.back();
  }

  Json View() {
    return OverviewJson({.snapshot = snapshot_,
                         .history = history_,
                         .batches = batches_,
                         .digest = digest_,
                         .health = HealthOf(snapshot_.fleet),
                         .version = "1"});
  }

  FleetSnapshot snapshot_{.at = {.instant = Instant(1000s), .wall = WallTime(1000s)}};
  FleetHistory history_;
  std::vector<storage::StoredBatch> batches_;
  OutcomeDigest digest_;
};

TEST_F(OverviewTest, AllIsWell) {
  AddWorker("a", WorkerState::kReady, 1);
  const Json health = View()["health"];
  EXPECT_EQ(health["state"], "ok");
  EXPECT_EQ(health["link"], "");
  EXPECT_TRUE(health["attention"].empty());
}

TEST_F(OverviewTest, WhatNeedsAttentionLinksToItsScreen) {
  AddWorker("a", WorkerState::kReady);
  AddWorker("b", WorkerState::kLost);
  Json health = View()["health"];
  EXPECT_EQ(health["state"], "warning");
  EXPECT_EQ(health["link"], "#/workers");
  EXPECT_EQ(health["attention"][0]["link"], "#/workers");
  snapshot_.fleet.storage_trouble = ErrorKind::kFull;
  health = View()["health"];
  EXPECT_EQ(health["state"], "bad");
  EXPECT_EQ(health["link"], "");
}

TEST_F(OverviewTest, CardsCountRecentFailures) {
  snapshot_.fleet.recently_finished = 30;
  snapshot_.fleet.recently_failed = 10;
  EXPECT_EQ(View()["cards"]["failed_5m"], 10);
}

TEST_F(OverviewTest, APoolSaysWhyItIdles) {
  AddWorker("a", WorkerState::kReady, 4);
  EXPECT_TRUE(View()["pools"][0]["why_idle"].is_null());
  AddWorker("b", WorkerState::kReady);
  EXPECT_EQ(View()["pools"][0]["why_idle"], "nothing is queued for it");
  snapshot_.fleet.queued = {5, 0, 0};
  snapshot_.fleet.unserved_reasons = {"no worker for it (label 'x') is there"};
  EXPECT_EQ(View()["pools"][0]["why_idle"], "no worker for it (label 'x') is there");
  snapshot_.fleet.is_stopping = true;
  EXPECT_EQ(View()["pools"][0]["why_idle"], "the coordinator is shutting down");
  const Json pool = View()["pools"][0];
  EXPECT_EQ(pool["ready"], 2);
  EXPECT_EQ(pool["busy"], 1);
  EXPECT_EQ(pool["leased_jobs"], 4);
  EXPECT_EQ(pool["queued"], 5);
}

TEST_F(OverviewTest, APoolSaysWhoIsOutAndWhy) {
  auto& drained = AddWorker("a", WorkerState::kDraining);
  drained.drain = wire::Drain{.target = "a", .reason = "fan", .by = "ada"};
  auto& drifting = AddWorker("b", WorkerState::kQuarantined);
  drifting.quarantine = "drift";
  const Json pool = View()["pools"][0];
  EXPECT_EQ(pool["why_idle"], "none of them takes jobs now");
  EXPECT_EQ(pool["why_out"], Json::array({"a drained by ada since 1970-01-01 00:00 UTC: fan",
                                          "b in quarantine: drift"}));
}

TEST_F(OverviewTest, ABatchHasWhatIsLeftOfItsTime) {
  batches_ = {{.batch = {1}, .closed = true, .job_count = 100, .finished = 0},
              {.batch = {2}, .closed = true, .job_count = 5, .finished = 5}};
  history_.Add(snapshot_, batches_);
  snapshot_.at.instant += 10s;
  batches_[0].finished = 20;
  history_.Add(snapshot_, batches_);
  const Json batches = View()["batches"];
  EXPECT_EQ(batches[0]["jobs_per_second"], 2.0);
  EXPECT_EQ(batches[0]["eta_s"], 40.0);
  EXPECT_EQ(batches[0]["state"], "running");
  EXPECT_TRUE(batches[1]["eta_s"].is_null());
  EXPECT_EQ(batches[1]["state"], "finished");
}

}  // namespace
}  // namespace loopfleet::coordinator
