#include "storage/sqlite/newest_outcomes.h"

#include "storage/brief_outcome.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class NewestOutcomesTest : public ScratchDatabase {
 protected:
  // Batch 1: a measured job and a failed one. Batch 2: an answer from the store.
  void SetUp() override {
    store_ = OpenStore();
    const std::vector<Write> group = {
        SomeBatch(1, {PlainSpec(4), PlainSpec(5)}), SomeBatch(2, {PlainSpec(4)}),
        JobFinished{SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(4), SomeMeasurement(1))},
        JobFinished{SomeOutcome({.index = 1, .sequence = 2}, PlainSpec(5),
                                SomeFailure(FailureCode::kRunCrash))},
        JobFinished{
            SomeOutcome({.batch = 2, .index = 0, .sequence = 1, .source = OutcomeSource::kStored},
                        PlainSpec(4), SomeMeasurement(1))}};
    ASSERT_TRUE(store_->Apply(group));
  }

  std::vector<BriefOutcome> Newest(std::uint32_t max) {
    return OpenReader()->NewestOutcomes(max).value().outcomes;
  }

  std::unique_ptr<SqliteStore> store_;
};

TEST_F(NewestOutcomesTest, NewestBatchFirstAndItsLatestFirst) {
  const auto newest = Newest(10);
  ASSERT_EQ(newest.size(), 3U);
  EXPECT_EQ(newest[0].job, (JobId{{2}, 0}));
  EXPECT_EQ(newest[1].job, (JobId{{1}, 1}));
  EXPECT_EQ(newest[2].job, (JobId{{1}, 0}));
  EXPECT_EQ(Newest(2).size(), 2U);
}

TEST_F(NewestOutcomesTest, SaysWhatTheStoreSays) {
  const auto newest = Newest(10);
  const auto outcomes = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value();
  const BriefOutcome& ok = newest[2];
  const Evaluation& evaluation = outcomes[0].evaluation;
  ASSERT_TRUE(ok.figures);
  EXPECT_EQ(ok.figures->gflop_per_second,
            GflopPerSecond(evaluation.flop_count, evaluation.measurement()));
  EXPECT_EQ(ok.figures->elapsed_ns, evaluation.measurement().elapsed_ns);
  EXPECT_EQ(ok.figures->spread, evaluation.measurement().spread);
  EXPECT_EQ(ok.figures->grade, EnumName(evaluation.measurement().grade));
  EXPECT_FALSE(ok.figures->is_suspect);
  EXPECT_TRUE(ok.is_measured);
  EXPECT_FALSE(newest[0].is_measured);
  EXPECT_EQ(ok.worker, outcomes[0].worker);
  EXPECT_EQ(ok.hardware_class, evaluation.conditions->hardware.hardware_class);
  EXPECT_EQ(ok.finished_at, outcomes[0].finished_at);
  Nanos all{0};
  for (const Stage stage :
       {Stage::kQueue, Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    all += evaluation.stages[stage];
  }
  EXPECT_EQ(ok.took, all);
  EXPECT_EQ(ok.measure, evaluation.stages[Stage::kMeasure]);

  const BriefOutcome& failed = newest[1];
  ASSERT_TRUE(failed.failure);
  EXPECT_FALSE(failed.figures);
  EXPECT_EQ(failed.failure->code, FailureCode::kRunCrash);
  EXPECT_EQ(failed.failure->message, outcomes[1].evaluation.failure().message);
}

TEST_F(NewestOutcomesTest, OfWideOnesItShowsTheBeginningAndFewer) {
  constexpr std::uint32_t kJobs = 20;
  JobSpec wide = PlainSpec(4);
  wide.actions.assign(1'024, looptree::ToggleThread{});
  Evaluation failure = BareFailure(FailureCode::kRunCrash);
  std::get<Failure>(failure.verdict).message = std::string(4'000, 'm');
  std::vector<Write> writes = {SomeBatch(3, std::vector<JobSpec>(kJobs, wide))};
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    writes.emplace_back(
        JobFinished{SomeOutcome({.batch = 3, .index = i, .sequence = i + 1}, wide, failure)});
  }
  ASSERT_TRUE(store_->Apply(writes));
  constexpr std::size_t kMostBytes = 10'000;
  const auto some = ReadNewestOutcomes(*OpenByHand(), 100, kMostBytes).value();
  EXPECT_FALSE(some.is_all);
  EXPECT_EQ(some.outcomes.size(), 5U);
  EXPECT_TRUE(some.outcomes[0].actions.starts_with("toggle_thread,toggle_thread,"));
  std::size_t bytes = 0;
  for (const BriefOutcome& brief : some.outcomes) {
    EXPECT_TRUE(brief.failure->message.ends_with("m …"));
    bytes += brief.actions.size() + brief.failure->message.size();
  }
  EXPECT_LT(bytes, kMostBytes + 2'100);
  EXPECT_EQ(Newest(100).size(), kJobs + 3);
}

TEST_F(NewestOutcomesTest, LeavesOutWhatNoProbeShouldHaveObserved) {
  const JobSpec probe{.source = looptree::BenchmarkUri{"probe://peaks-v0"}};
  Evaluation small{.verdict = Observed{.values = {{"clock_mhz", 3700.0}}},
                   .subject = SomeKey(7),
                   .conditions = SomeConditions()};
  Evaluation large = small;
  std::get<Observed>(large.verdict).values["text"] = std::string(5'000, 't');
  ASSERT_TRUE(store_->Apply(std::vector<Write>{
      SomeBatch(3, {probe, probe}), JobFinished{SomeOutcome({.batch = 3}, probe, small)},
      JobFinished{SomeOutcome({.batch = 3, .index = 1, .sequence = 2}, probe, large)}}));
  const auto newest = Newest(2);
  EXPECT_TRUE(newest[0].is_observed);
  EXPECT_EQ(newest[0].observed, "");
  EXPECT_EQ(newest[1].observed, R"({"clock_mhz":3700.0})");
}

TEST_F(NewestOutcomesTest, TellsWhatIsNotTrusted) {
  ASSERT_TRUE(store_->Apply(std::vector<Write>{
      ResultDoubted{.job = {{1}, 0}, .flagged_at = WallTime(Nanos(1)), .reason = "drift"}}));
  EXPECT_TRUE(Newest(10)[2].figures->is_suspect);
}

}  // namespace
}  // namespace loopfleet::storage
