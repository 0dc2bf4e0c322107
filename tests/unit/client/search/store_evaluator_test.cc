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
  static Evaluation FigureOn(const std::string& hardware_class, std::uint8_t tree,
                             double elapsed_ns) {
    Evaluation evaluation = Figure(tree, elapsed_ns);
    evaluation.conditions->hardware.hardware_class = hardware_class;
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

  // Of each its nanoseconds, or the failure's name.
  std::vector<std::string> SaysOf(const std::vector<std::uint8_t>& trees) {
    auto evaluator = StoreEvaluator::Open(path().string());
    if (!evaluator) return {evaluator.error().message};
    std::vector<Trial> trials;
    for (const std::uint8_t tree : trees) {
      trials.push_back({.source = spec_.source, .candidate = {.key = storage::SomeKey(tree)}});
    }
    EXPECT_TRUE((*evaluator)->Send(trials));
    const auto outcomes = (*evaluator)->Receive();
    std::vector<std::string> said;
    for (const Outcome& outcome : *outcomes) {
      const Evaluation& evaluation = outcome.evaluation;
      said.push_back(evaluation.ok() ? fmt::format("{}", evaluation.measurement().elapsed_ns)
                                     : std::string(InfoOf(evaluation.failure().code).name));
    }
    return said;
  }
  std::string Says(std::uint8_t tree) { return SaysOf({tree}).front(); }

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

// Tree 1 is the start, which a live search measures first.
TEST_F(StoreEvaluatorTest, TheClassOfTheStartsFirstFigureAnswers) {
  Finish(FigureOn("cpu:b", 2, 20));
  Finish(FigureOn("cpu:a", 1, 100));
  Finish(FigureOn("cpu:a", 2, 90));
  Finish(FigureOn("cpu:b", 1, 30));
  for (const std::uint8_t tree : {3, 4, 5}) Finish(FigureOn("cpu:b", tree, 10));
  EXPECT_EQ(SaysOf({1, 2, 3}), (std::vector<std::string>{"100", "90", "NOT_FOUND"}));
}

TEST_F(StoreEvaluatorTest, WithinThatClassOneCompilerAnswersThatMeasuredTheStart) {
  const auto newer = [](Evaluation evaluation) {
    evaluation.conditions->compiler.revision = "2";
    return evaluation;
  };
  Finish(Figure(1, 100));
  Finish(newer(Figure(1, 50)));
  Finish(newer(Figure(2, 40)));
  for (const std::uint8_t tree : {3, 4, 5}) {
    Evaluation other = Figure(tree, 10);
    other.conditions->policy = "another";
    Finish(other);
  }
  EXPECT_EQ(SaysOf({1, 2, 3}), (std::vector<std::string>{"50", "40", "NOT_FOUND"}));
}

TEST_F(StoreEvaluatorTest, WhereTheStartHasNoFigureTheMostTreesAnswer) {
  Finish(FigureOn("cpu:a", 2, 90));
  for (const std::uint8_t tree : {2, 3}) Finish(FigureOn("cpu:b", tree, 10.0 * tree));
  EXPECT_EQ(SaysOf({1, 2, 3}), (std::vector<std::string>{"NOT_FOUND", "20", "30"}));
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
