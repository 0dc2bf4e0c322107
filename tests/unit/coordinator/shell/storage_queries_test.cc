#include "coordinator/shell/storage_queries.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"
#include "tests/unit/coordinator/shell/coordinator_process.h"
#include "tests/unit/storage/wide_outcomes.h"

namespace loopfleet::coordinator {
namespace {

// A row written by a later version, for example: retrying would never succeed.
TEST(StorageQueries, WhatNeverGetsBetterIsNotTriedAgain) {
  const PrivateDir dir;
  const auto path = dir.path() / "test.db";
  const auto store = storage::SqliteStore::Open(path).value();
  storage::JobsAccepted accepted{
      .batch = {1}, .client = Uuid::Random(), .request_id = Uuid::Random()};
  accepted.jobs.push_back({.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"}});
  storage::JobFinished finished{.outcome = {.job = {.batch = {1}}, .sequence = 1}};
  finished.outcome.evaluation.verdict = Failure{.code = static_cast<FailureCode>(9999)};
  ASSERT_TRUE(store->Apply(std::vector<storage::Write>{accepted, finished}));

  const auto reader = storage::SqliteReader::Open(path).value();
  StorageQueries answers(*reader);
  const auto answer = answers.Outcomes({.batch = {1}});
  const auto* refused = std::get_if<wire::Refused>(&answer);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->failure.code, FailureCode::kStorageCorrupt);
  EXPECT_NE(refused->failure.message.find("does not know"), std::string::npos)
      << refused->failure.message;
  EXPECT_EQ(refused->retry_after_ms, 0u);
}

// Six outcomes of 400 KB, of which a page holds two: a damaged one behind them is not met.
TEST(StorageQueries, APageReadsLittleMoreThanItHolds) {
  constexpr std::uint32_t kJobs = 6;
  const PrivateDir dir;
  const auto path = dir.path() / "test.db";
  const auto store = storage::SqliteStore::Open(path).value();
  ASSERT_TRUE(store->Apply(storage::WideOutcomes(kJobs)));
  ASSERT_TRUE(
      storage::Connection::Open(path, storage::Access::kReadWriteCreate, std::chrono::seconds(5))
          .value()
          ->Run("UPDATE outcomes SET worker = 'another' WHERE sequence = 5"));
  const auto reader = storage::SqliteReader::Open(path).value();
  StorageQueries answers(*reader);
  const auto list = std::get<wire::OutcomeList>(answers.Answer(wire::ListOutcomes{}));
  EXPECT_EQ(list.outcomes.size(), 2u);
  EXPECT_EQ(list.next.sequence, 2u);
  EXPECT_EQ(reader->TakeDamagedCount(), 0u);
  std::vector<Outcome> seen;
  while (seen.size() < kJobs) {
    const auto page = std::get<wire::OutcomePage>(
        answers.Outcomes({.batch = {1}, .after_sequence = seen.size()}));
    ASSERT_FALSE(page.outcomes.empty());
    if (seen.empty()) {
      EXPECT_EQ(page.outcomes.size(), 2u);
      EXPECT_EQ(reader->TakeDamagedCount(), 0u);
    }
    for (const Outcome& outcome : page.outcomes) {
      seen.push_back(outcome);
      EXPECT_EQ(outcome.sequence, seen.size());
      EXPECT_EQ(outcome.evaluation.ok(), outcome.sequence != 5);
    }
  }
}

TEST(StorageQueries, AJobThatIsStillToBeReadIsQueued) {
  const PrivateDir dir;
  const auto path = dir.path() / "test.db";
  const auto store = storage::SqliteStore::Open(path).value();
  storage::JobsAccepted accepted{
      .batch = {1}, .client = Uuid::Random(), .request_id = Uuid::Random()};
  accepted.jobs.push_back({.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"}});
  ASSERT_TRUE(store->Apply(std::vector<storage::Write>{accepted}));
  const auto reader = storage::SqliteReader::Open(path).value();
  StorageQueries answers(*reader);
  const JobId job{.batch = {1}};
  const auto state = [&](Unknown why) {
    return std::get<wire::JobExplanation>(answers.Answer(wire::ExplainJob{.job = job}, why)).state;
  };
  EXPECT_EQ(state(Unknown::kMayBeToCome), wire::JobState::kQueued);
  EXPECT_EQ(state(Unknown::kIsOver), wire::JobState::kFinished);  // outcome on its way to disk
  storage::JobFinished finished{.outcome = {.job = job, .sequence = 1}};
  finished.outcome.evaluation.verdict = Failure{.code = FailureCode::kRunCrash};
  ASSERT_TRUE(store->Apply(std::vector<storage::Write>{finished}));
  EXPECT_EQ(state(Unknown::kMayBeToCome), wire::JobState::kFinished);
}

// While the coordinator recovers, the core knows only some of the jobs.
TEST(StorageQueries, OnlyAJobWithAnOutcomeIsFlagged) {
  const PrivateDir dir;
  const auto path = dir.path() / "test.db";
  const auto store = storage::SqliteStore::Open(path).value();
  storage::JobsAccepted accepted{
      .batch = {1}, .client = Uuid::Random(), .request_id = Uuid::Random()};
  accepted.jobs.resize(2, {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"}});
  storage::JobFinished finished{.outcome = {.job = {.batch = {1}}, .sequence = 1}};
  finished.outcome.evaluation.verdict = Failure{.code = FailureCode::kRunCrash};
  ASSERT_TRUE(store->Apply(std::vector<storage::Write>{accepted, finished}));
  const auto reader = storage::SqliteReader::Open(path).value();
  const auto why = [&](std::vector<JobId> jobs) {
    return WhyNotFlagged(*reader, wire::FlagResults{.jobs = std::move(jobs)});
  };
  const JobId over{.batch = {1}};
  EXPECT_FALSE(why({over}));
  for (const JobId other :
       {JobId{.batch = {1}, .index = 1}, JobId{.batch = {1}, .index = 2}, JobId{.batch = {2}}}) {
    const auto failure = why({over, other});
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, FailureCode::kNotFound);
  }
}

TEST(StorageQueries, WhatMayPassIsTriedAgain) {
  for (const ErrorKind kind : {ErrorKind::kUnavailable, ErrorKind::kSystem}) {
    const wire::Refused refused = Unreadable({.kind = kind, .message = "test"});
    EXPECT_EQ(refused.failure.code, FailureCode::kBusy);
    EXPECT_GT(refused.retry_after_ms, 0u);
  }
}

// A worker states the code of its kernel, and could state that of any other.
TEST(StorageQueries, CodeIsLookedUpForTheProgramOfTheJob) {
  const PrivateDir dir;
  const auto path = dir.path() / "test.db";
  const auto store = storage::SqliteStore::Open(path).value();
  storage::JobsAccepted accepted{
      .batch = {1}, .client = Uuid::Random(), .request_id = Uuid::Random()};
  accepted.jobs.push_back({.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"}});
  storage::JobFinished finished{.outcome = {.job = {.batch = {1}}, .sequence = 1},
                                .program = ContentKey::Of("held")};
  Evaluation& evaluation = finished.outcome.evaluation;
  evaluation.verdict = Measurement{.elapsed_ns = 10, .grade = Grade::kA};
  evaluation.subject = ContentKey::Of("a tree");
  evaluation.code_hash = "c0de";
  evaluation.conditions.emplace();
  ASSERT_TRUE(store->Apply(std::vector<storage::Write>{accepted, finished}));
  const auto reader = storage::SqliteReader::Open(path).value();
  StorageQueries answers(*reader);
  const auto found = [&](std::string_view program) {
    return answers
        .Answer(
            AnswerCodeLookup{.lookup = {.code_hash = "c0de"}, .program = ContentKey::Of(program)})
        .found;
  };
  EXPECT_TRUE(found("held"));
  EXPECT_FALSE(found("another"));
}

}  // namespace
}  // namespace loopfleet::coordinator
