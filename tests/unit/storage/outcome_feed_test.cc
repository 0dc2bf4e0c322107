#include "storage/outcome_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "storage/store.h"
#include "tests/support/model_store/model_store.h"
#include "tests/unit/storage/record_samples.h"

namespace loopfleet::storage {
namespace {

class Feed : public ::testing::Test {
 protected:
  void MustApply(const std::vector<Write>& writes) {
    const Status status = store_->Apply(writes);
    ASSERT_TRUE(status) << status.error().message;
  }
  void Accept(std::uint64_t batch, std::size_t jobs, bool closes = true) {
    JobsAccepted accepted = SomeBatch(batch, std::vector<JobSpec>(jobs, PlainSpec(4)));
    accepted.request_id = Uuid::Random();
    accepted.closes_batch = closes;
    MustApply({accepted});
  }
  void Finish(std::uint64_t batch, std::uint32_t index) {
    Outcome outcome = SomeOutcome({.batch = batch, .index = index, .sequence = ++sequence_[batch]},
                                  PlainSpec(4), BareFailure(FailureCode::kExpired));
    MustApply({JobFinished{.outcome = outcome}});
  }
  FeedStep Next(std::uint32_t most) { return NextOutcomes(*reader_, last_.after, most).value(); }
  // The jobs of the next step, which is taken over.
  std::vector<JobId> Take(std::uint32_t most = 100) {
    last_ = Next(most);
    EXPECT_LE(last_.outcomes.size(), most);
    std::vector<JobId> jobs;
    for (const Outcome& outcome : last_.outcomes) jobs.push_back(outcome.job);
    return jobs;
  }

  ModelDatabase database_;
  std::unique_ptr<Store> store_ = ModelStore::Open(database_).value();
  std::unique_ptr<StoreReader> reader_ = store_->OpenReader().value();
  FeedStep last_;
  std::map<std::uint64_t, std::uint64_t> sequence_;
};

TEST_F(Feed, GivesEachOutcomeOnceAsJobsFinish) {
  EXPECT_TRUE(Take().empty());
  Accept(1, 2);
  Accept(2, 2);
  Finish(2, 1);
  EXPECT_EQ(Take(), (std::vector<JobId>{{{2}, 1}}));
  EXPECT_TRUE(Take().empty());
  Finish(1, 1);
  Finish(1, 0);
  Finish(2, 0);
  EXPECT_EQ(Take(), (std::vector<JobId>{{{1}, 1}, {{1}, 0}, {{2}, 0}}));
  EXPECT_EQ(last_.after, (FeedPosition{.last = {2}, .open = {}})) << "finished batches are let go";
}

TEST_F(Feed, AStepIsTheSameUntilItIsTakenOver) {
  Accept(1, 1);
  Finish(1, 0);
  EXPECT_EQ(Next(10).outcomes, Next(10).outcomes);
  EXPECT_EQ(Take().size(), 1U);
}

TEST_F(Feed, AnOpenBatchMayGrow) {
  Accept(1, 1, false);
  Finish(1, 0);
  EXPECT_EQ(Take().size(), 1U);
  EXPECT_EQ(last_.after.open, (std::map<BatchId, std::uint64_t>{{{1}, 1}}));
  JobsAccepted more = SomeBatch(1, {PlainSpec(4)});
  more.request_id = Uuid::Random();
  more.new_batch = false;
  more.first_index = 1;
  MustApply({more});
  Finish(1, 1);
  EXPECT_EQ(Take(), (std::vector<JobId>{{{1}, 1}}));
  EXPECT_TRUE(last_.after.open.empty());
}

TEST_F(Feed, SaysHowManyWait) {
  for (std::uint64_t batch = 1; batch <= 3; ++batch) {
    Accept(batch, 4);
    for (std::uint32_t job = 0; job < 4; ++job) Finish(batch, job);
  }
  EXPECT_EQ(Take(5).size(), 5U);
  EXPECT_EQ(last_.waiting, 7U);
  EXPECT_EQ(Take(5).size(), 5U);
  EXPECT_EQ(last_.waiting, 2U);
  EXPECT_EQ(Take(5).size(), 2U);
  EXPECT_EQ(last_.waiting, 0U);
}

TEST_F(Feed, SaysThatMoreWaitBeyondTheBatchesOfAStep) {
  constexpr std::uint64_t kBatches = 1'500;
  for (std::uint64_t batch = 1; batch <= kBatches; ++batch) {
    Accept(batch, 1);
    Finish(batch, 0);
  }
  std::size_t seen = Take(10'000).size();
  EXPECT_LT(seen, kBatches);
  EXPECT_GT(last_.waiting, 0U);
  seen += Take(10'000).size();
  EXPECT_EQ(seen, kBatches);
  EXPECT_EQ(last_.waiting, 0U);
}

TEST_F(Feed, AStepOfLargeOutcomesIsShort) {
  constexpr std::uint32_t kJobs = 120;
  constexpr std::size_t kEach = 400'000;
  const Evaluation wide{.verdict = Observed{.values = {{"Ir", std::string(kEach, 'x')}}},
                        .subject = SomeKey(1),
                        .conditions = SomeConditions()};
  Accept(1, kJobs);
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    MustApply({JobFinished{SomeOutcome({.index = i, .sequence = i + 1}, PlainSpec(4), wide)}});
  }
  const std::size_t first = Take(5'000).size();
  EXPECT_GE((first + 1) * kEach, kMostFeedBytes);
  EXPECT_LE((first - 1) * kEach, kMostFeedBytes);
  EXPECT_EQ(last_.waiting, kJobs - first);
  EXPECT_EQ(Take(5'000).size(), kJobs - first);
  EXPECT_EQ(last_.waiting, 0U);
}

TEST_F(Feed, ABatchThatIsGoneIsLetGo) {
  Accept(1, 2);
  Finish(1, 0);
  Take();
  database_.batches.erase({1});
  EXPECT_TRUE(Take().empty());
  EXPECT_TRUE(last_.after.open.empty());
}

// However steps and jobs interleave, and wherever another reader goes on.
TEST_F(Feed, NothingIsLostOrRepeatedInAnyOrder) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) {
    return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random);
  };
  std::vector<JobId> unfinished;
  std::vector<JobId> finished;
  std::vector<JobId> seen;
  std::uint64_t batches = 0;
  for (int i = 0; i < 2'000; ++i) {
    const std::uint32_t what = below(10);
    if (what == 0) {
      const std::uint32_t jobs = below(8);
      Accept(++batches, jobs);
      for (std::uint32_t job = 0; job < jobs; ++job) unfinished.push_back({{batches}, job});
    } else if (what < 7 && !unfinished.empty()) {
      std::swap(unfinished[below(static_cast<std::uint32_t>(unfinished.size()))],
                unfinished.back());
      Finish(unfinished.back().batch.value, unfinished.back().index);
      finished.push_back(unfinished.back());
      unfinished.pop_back();
    } else {
      std::ranges::copy(Take(1 + below(6)), std::back_inserter(seen));
      if (below(3) == 0) reader_ = store_->OpenReader().value();
    }
  }
  for (std::vector<JobId> more = Take(); !more.empty(); more = Take()) {
    std::ranges::copy(more, std::back_inserter(seen));
  }
  std::ranges::sort(seen);
  std::ranges::sort(finished);
  EXPECT_EQ(seen, finished);
  EXPECT_GT(seen.size(), 500U);
}

}  // namespace
}  // namespace loopfleet::storage
