#include "client/cli/text/explanation_text.h"

#include <gtest/gtest.h>

namespace loopfleet::client {
namespace {

wire::JobExplanation Waiting() {
  return {.job = {.batch = BatchId{12}, .index = 3},
          .state = wire::JobState::kQueued,
          .reason = "queued: 1 worker matches",
          .priority = 5,
          .waited_ms = 1500,
          .deadline_left_ms = 58'500,
          .ahead_own = 17,
          .follows = JobId{.batch = BatchId{12}, .index = 1},
          .affinity_worker = "n1-7",
          .workers = {{.name = "n1-7", .leased_jobs = 8, .credit = 8},
                      {.name = "n2-7",
                       .state = wire::WorkerState::kDraining,
                       .leased_jobs = 0,
                       .credit = 8,
                       .max_threads = 2,
                       .missing_labels = {"quiet"}}},
          .more_workers = 5,
          .worker = {},
          .outcome = {}};
}

TEST(ExplanationText, SaysWhatAJobWaitsFor) {
  const std::string text = ExplanationText(Waiting());
  for (const char* part : {"job 12.3 is queued: 1 worker matches", "1.500 s ago", "priority 5",
                           "expires in 58.500 s", "bound to n1-7", "matches, full", "draining",
                           "lacks quiet", "gives a kernel 2 threads", "and 5 more workers"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(ExplanationText, JsonHasItAll) {
  const Json json = ExplanationJson(Waiting());
  EXPECT_EQ(json["job"], "12.3");
  EXPECT_EQ(json["state"], "queued");
  EXPECT_EQ(json["deadline_left_ms"], 58'500);
  EXPECT_EQ(json["follows"], "12.1");
  EXPECT_EQ(json["worker"], nullptr);
  EXPECT_EQ(json["outcome"], nullptr);
  ASSERT_EQ(json["workers"].size(), 2U);
  EXPECT_EQ(json["workers"][0]["matches"], true);
  EXPECT_EQ(json["workers"][0]["full"], true);
  EXPECT_EQ(json["workers"][0]["max_threads"], nullptr);
  EXPECT_EQ(json["workers"][1]["matches"], false);
  EXPECT_EQ(json["workers"][1]["missing_labels"], Json::array({"quiet"}));
}

TEST(ExplanationText, OneThatIsOverIsOneLine) {
  const wire::JobExplanation over{.job = {.batch = BatchId{1}, .index = 0},
                                  .state = wire::JobState::kFinished,
                                  .reason = "finished: EXPIRED: not finished 1 s after"};
  EXPECT_EQ(ExplanationText(over), "job 1.0 is finished: EXPIRED: not finished 1 s after\n");
}

}  // namespace
}  // namespace loopfleet::client
