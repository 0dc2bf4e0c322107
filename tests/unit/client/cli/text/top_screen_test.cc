#include "client/cli/text/top_screen.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace loopfleet::client {
namespace {

using std::chrono::seconds;

const WallTime kStart{seconds(1'763'800'000)};

FleetReplies Replies() {
  FleetReplies replies;
  replies.fleet = {.epoch = 4,
                   .started_at = kStart,
                   .now = kStart + seconds(7'500),
                   .version = "0.1.0",
                   .http = "127.0.0.1:9570",
                   .queued_cpu = 1'204,
                   .leased_jobs = 8,
                   .oldest_queued_at = kStart + seconds(7'488),
                   .accepted_jobs = 3'100,
                   .finished_jobs = 1'888,
                   .failed_jobs = 5,
                   .shared_jobs = 320,
                   .workers_ready = 2,
                   .failures = {{.code = "RUN_CRASH", .count = 2}, {.code = "CUT", .count = 3}},
                   .health = {.sentence = "All is well.", .attention = {}}};
  wire::WorkerInfo worker{.worker = {}, .name = "build-7-123", .finished_jobs = 900};
  worker.hardware.model = "Imaginary CPU";
  replies.workers.workers = {worker};
  replies.batches.batches = {{.batch = BatchId{12},
                              .state = wire::BatchState::kRunning,
                              .job_count = 1'300,
                              .finished = 100,
                              .failed = 5},
                             {.batch = BatchId{11}, .state = wire::BatchState::kFinished}};
  return replies;
}

TEST(StatusText, SaysWhatNeedsAttentionTheWorstFirst) {
  FleetReplies replies = Replies();
  replies.fleet.health = {.sentence = "It is full.",
                          .attention = {{.kind = "storage_full",
                                         .severity = wire::Severity::kProblem,
                                         .count = 1,
                                         .sentence = "It is full."},
                                        {.kind = "of_a_newer_version",
                                         .severity = wire::Severity::kWarning,
                                         .count = 3,
                                         .sentence = "Look\n."}}};
  EXPECT_TRUE(
      StatusText(replies).starts_with("It is full. See `df -h`.\nLook\\x0a.\n\ncoordinator"));
  const Json health = StatusJson(replies)["health"];
  EXPECT_EQ(health["level"], "problem");
  EXPECT_EQ(health["sentence"], "It is full.");
  EXPECT_EQ(health["hint"], "df -h");
  EXPECT_EQ(health["attention"][1]["kind"], "of_a_newer_version");
  EXPECT_EQ(health["attention"][1]["severity"], "warning");
  EXPECT_EQ(health["attention"][1]["count"], 3);
}

TEST(StatusText, AnOlderCoordinatorIsNotTakenForAHealthyOne) {
  FleetReplies replies = Replies();
  replies.fleet.health = {};
  EXPECT_TRUE(StatusText(replies).starts_with("The coordinator is older")) << StatusText(replies);
  EXPECT_EQ(StatusJson(replies)["health"]["level"], "warning");
}

TEST(StatusText, IsAFewLinesForPeople) {
  EXPECT_EQ(
      StatusText(Replies()),
      "All is well.\n"
      "\n"
      "coordinator  version 0.1.0, up 2 h 5 min, start number 4, http://127.0.0.1:9570/metrics\n"
      "workers      2 ready, 0 draining, 0 quarantined, 0 lost\n"
      "queue        1,204 waiting (cpu 1,204, cuda 0, any 0), the oldest for 12 s; 8 leased\n"
      "jobs         3,100 accepted, 1,888 finished, 5 failed, 320 from the store or shared\n"
      "failures     CUT 3, RUN_CRASH 2\n"
      "running      batch 12: 100 of 1,300 jobs done, 5 failed\n");
}

TEST(StatusJson, HasTheSameNumbers) {
  const Json json = StatusJson(Replies());
  EXPECT_EQ(json["health"]["level"], "healthy");
  EXPECT_TRUE(json["health"]["hint"].is_null());
  EXPECT_EQ(json["queue"]["cpu"], 1'204);
  EXPECT_EQ(json["jobs"]["failed"], 5);
  EXPECT_EQ(json["failures"]["CUT"], 3);
  EXPECT_EQ(json["workers"]["ready"], 2);
  EXPECT_EQ(json["coordinator"]["started_at"], "2025-11-22T08:26:40Z");
  ASSERT_EQ(json["batches"].size(), 1U);
  EXPECT_EQ(json["batches"][0]["batch"], 12);
}

TEST(EventText, IsOneLineWhateverComesIn) {
  EXPECT_EQ(EventText({.sequence = 1, .at = kStart, .kind = "worker.joined", .subject = "w-1"}),
            "2025-11-22T08:26:40Z  worker.joined         w-1");
  EXPECT_EQ(EventText({.at = kStart, .kind = "batch.finished", .batch = BatchId{3}, .count = 1}),
            "2025-11-22T08:26:40Z  batch.finished        3, 1 job");
  const std::string hostile = EventText(
      {.at = kStart, .kind = "worker.lost", .subject = "\033[2Jname\n", .text = "gone\r\n"});
  EXPECT_TRUE(std::ranges::none_of(hostile, [](char c) {
    return static_cast<unsigned char>(c) < 0x20;
  })) << hostile;
}

TEST(ReplyHistory, RatesAreOfTheLastMoments) {
  ReplyHistory history;
  FleetReplies replies = Replies();
  history.Add(replies);
  EXPECT_EQ(history.JobsPerSecond(), 0);
  replies.fleet.now += seconds(2);
  replies.fleet.finished_jobs += 500;
  replies.workers.workers[0].finished_jobs += 400;
  replies.batches.batches[0].finished += 300;
  history.Add(replies);
  EXPECT_DOUBLE_EQ(history.JobsPerSecond(), 250);
  EXPECT_DOUBLE_EQ(history.JobsPerSecondOf(replies.workers.workers[0]), 200);
  EXPECT_DOUBLE_EQ(history.JobsPerSecondOf(replies.batches.batches[0]), 150);
  EXPECT_EQ(history.RatePerStep(), (std::vector<double>{250}));
}

TEST(ReplyHistory, BeginsAnewWithAnotherCoordinator) {
  ReplyHistory history;
  FleetReplies replies = Replies();
  replies.fleet.events = {{.sequence = 41, .kind = "a"}};
  replies.fleet.last_event = 41;
  history.Add(replies);
  EXPECT_EQ(history.last_event(), 41U);
  replies.fleet.epoch = 5;
  replies.fleet.finished_jobs = 3;
  replies.fleet.events = {};  // the request was for those after 41: none yet
  replies.fleet.last_event = 2;
  history.Add(replies);
  EXPECT_EQ(history.last_event(), 0U);  // so that the next request returns both
  EXPECT_EQ(history.JobsPerSecond(), 0);
  EXPECT_TRUE(history.events().empty());
}

TEST(TopScreen, FitsTheScreenAndShowsWhatCounts) {
  ReplyHistory history;
  FleetReplies replies = Replies();
  replies.workers.workers.resize(100, replies.workers.workers[0]);
  replies.workers.workers[99].state = wire::WorkerState::kQuarantined;
  replies.workers.workers[99].name = "the-bad-one";
  history.Add(replies);
  replies.fleet.now += seconds(1);
  replies.fleet.finished_jobs += 1'000;
  replies.fleet.events = {{.sequence = 1, .at = kStart, .kind = "worker.lost", .subject = "w"}};
  history.Add(replies);
  for (const ScreenSize size :
       {ScreenSize{80, 24}, ScreenSize{40, 10}, ScreenSize{200, 60}, ScreenSize{1, 1}}) {
    const auto lines = TopScreen(history, size);
    EXPECT_LE(lines.size(), size.rows);
    for (const auto& line : lines) EXPECT_LE(line.size(), size.columns) << line;
  }
  std::string text;
  for (const auto& line : TopScreen(history, {.columns = 200, .rows = 40})) text += line + "\n";
  EXPECT_NE(text.find("jobs/s 1,000"), std::string::npos) << text;
  EXPECT_NE(text.find("the-bad-one"), std::string::npos) << text;  // before 99 good ones
  EXPECT_NE(text.find("worker.lost"), std::string::npos) << text;
  EXPECT_NE(text.find("100/1,300"), std::string::npos) << text;
}

}  // namespace
}  // namespace loopfleet::client
