#include "client/search/store_evaluator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::client {
namespace {

using storage::SomeMeasurement;

constexpr WallTime kThen{std::chrono::hours(480'000)};

// A database with outcomes of one benchmark, which the evaluator is asked for.
class StoreEvaluatorTest : public storage::ScratchDatabase {
 protected:
  StoreEvaluatorTest() : store_(OpenStore()) {}

  static Evaluation Figure(std::uint8_t tree, double elapsed_ns) {
    Evaluation evaluation = SomeMeasurement(tree);
    std::get<Measurement>(evaluation.verdict).elapsed_ns = elapsed_ns;
    evaluation.conditions->threads = 1;
    evaluation.conditions->cache = CacheState::kWarm;
    return evaluation;
  }
  static Evaluation Cut(std::uint8_t tree) {
    Evaluation evaluation = Figure(tree, 1);
    evaluation.verdict = Failure{.code = FailureCode::kCut};
    return evaluation;
  }

  JobId Finish(Evaluation evaluation) {
    const std::uint64_t batch = ++batches_;
    Outcome outcome = storage::SomeOutcome({.batch = batch}, spec_, std::move(evaluation));
    outcome.finished_at = kThen + std::chrono::minutes(batch);
    Apply({storage::SomeBatch(batch, {spec_}), storage::JobFinished{.outcome = outcome}});
    return outcome.job;
  }
  void AnswerFromStore(const Evaluation& like) {
    const std::uint64_t batch = ++batches_;
    const auto answer = OpenReader()->FindResult(storage::KeyFor(like)).value();
    ASSERT_NE(answer, nullptr);
    Apply(
        {storage::SomeBatch(batch, {spec_}),
         storage::JobsAnswered{.finished_at = kThen + std::chrono::minutes(batch),
                               .jobs = {{.job = {{batch}, 0}, .sequence = 1, .answer = answer}}}});
  }
  void Doubt(JobId job) {
    Apply({storage::ResultDoubted{.job = job, .flagged_at = kThen, .reason = "a test"}});
  }

  // Its nanoseconds, or the failure's name.
  std::string Says(std::uint8_t tree) {
    auto evaluator = StoreEvaluator::Open(path().string());
    if (!evaluator) return evaluator.error().message;
    const std::vector<Trial> trials = {
        {.source = spec_.source, .candidate = {.key = storage::SomeKey(tree)}}};
    EXPECT_TRUE((*evaluator)->Send(trials));
    const auto outcomes = (*evaluator)->Receive();
    const Evaluation& evaluation = outcomes->front().evaluation;
    if (!evaluation.ok()) return std::string(InfoOf(evaluation.failure().code).name);
    return fmt::format("{}", evaluation.measurement().elapsed_ns);
  }

 private:
  void Apply(const std::vector<storage::Write>& writes) {
    const Status applied = store_->Apply(writes);
    ASSERT_TRUE(applied) << applied.error().message;
  }

  const std::unique_ptr<storage::SqliteStore> store_;
  const JobSpec spec_ = storage::PlainSpec(4);
  std::uint64_t batches_ = 0;
};

TEST_F(StoreEvaluatorTest, TheFirstFigureAnswers) {
  Finish(Figure(1, 100));
  Finish(Figure(1, 90));
  Finish(Cut(1));
  EXPECT_EQ(Says(1), "100");
  EXPECT_EQ(Says(2), "NOT_FOUND");
}

TEST_F(StoreEvaluatorTest, AFailureAnswersOnlyWhereThereIsNoFigure) {
  Finish(Cut(1));
  EXPECT_EQ(Says(1), "CUT");
  Finish(Figure(1, 100));
  EXPECT_EQ(Says(1), "100");
}

TEST_F(StoreEvaluatorTest, AFigureInDoubtAnswersNothing) {
  const Evaluation false_figure = Figure(1, 10);
  const JobId doubted = Finish(false_figure);
  AnswerFromStore(false_figure);
  EXPECT_EQ(Says(1), "10");
  Doubt(doubted);
  EXPECT_EQ(Says(1), "NOT_FOUND");
  Finish(Figure(1, 100));
  EXPECT_EQ(Says(1), "100");
}

}  // namespace
}  // namespace loopfleet::client
