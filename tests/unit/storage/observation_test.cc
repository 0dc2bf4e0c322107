// Verdicts on jobs that are not timed: StoreReader::FindObservation, and outcomes with them.

#include <gtest/gtest.h>

#include <limits>

#include "storage/database_check.h"
#include "storage/pruning.h"
#include "storage/store.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

JobSpec ProbeSpec() { return {.source = looptree::BenchmarkUri{"probe://peaks-v0"}}; }

Evaluation Observing(std::uint8_t number) {
  Evaluation evaluation;
  evaluation.verdict = Observed{.values = {{"clock_mhz", 3700.0 + number},
                                           {"counts", std::vector<double>{1, 2, number * 0.5}},
                                           {"text", std::string("a \"quoted\" line\nand µ")}}};
  evaluation.subject = SomeKey(number);
  evaluation.conditions = SomeConditions();
  return evaluation;
}

class ObservationTest : public ScratchDatabase {
 protected:
  static Write Finished(std::uint64_t batch, std::uint64_t sequence, Evaluation evaluation,
                        OutcomeSource source = OutcomeSource::kMeasured) {
    return JobFinished{SomeOutcome({.batch = batch,
                                    .index = static_cast<std::uint32_t>(sequence - 1),
                                    .sequence = sequence,
                                    .source = source},
                                   ProbeSpec(), std::move(evaluation))};
  }
  static void Apply(Store& store, std::vector<Write> writes) {
    const Status applied = store.Apply(writes);
    ASSERT_TRUE(applied) << applied.error().message;
  }
};

TEST_F(ObservationTest, AnOutcomeHasItsValuesAfterARestart) {
  const Evaluation observing = Observing(1);
  {
    const auto store = OpenStore();
    Apply(*store, {SomeBatch(1, {ProbeSpec()}), Finished(1, 1, observing)});
  }
  const auto store = OpenStore();
  const auto outcomes = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].evaluation, observing);
  EXPECT_EQ(outcomes[0].benchmark, ProbeSpec().source);
}

TEST_F(ObservationTest, ABlobNeedsAProgramOfVersion21) {
  Evaluation observing = Observing(1);
  {
    const auto store = OpenStore();
    Apply(*store, {SomeBatch(1, {ProbeSpec()}), Finished(1, 1, observing)});
  }
  EXPECT_EQ(NumberByHand("SELECT oldest_program FROM writer"), 14);
  std::get<Observed>(observing.verdict).values["Ir"] =
      Blob{.sha256 = std::string(64, 'a'), .bytes = 600'000};
  {
    const auto store = OpenStore();
    Apply(*store, {SomeBatch(2, {ProbeSpec()}), Finished(2, 1, observing)});
  }
  EXPECT_EQ(NumberByHand("SELECT oldest_program FROM writer"), 21);
  const auto outcomes = OpenReader()->ReadOutcomes({2}, 0, {.max_rows = 10}).value();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].evaluation, observing);
  EXPECT_EQ(NumberByHand("SELECT value ->> 'bytes' FROM v_observations WHERE name = 'Ir'"),
            600'000);
}

TEST_F(ObservationTest, TheNewestWithItsConditionsAnswers) {
  const auto store = OpenStore();
  const auto reader = OpenReader();
  const Evaluation first = Observing(1);
  Evaluation second = first;
  std::get<Observed>(second.verdict).values["clock_mhz"] = 1.0;
  ResultKey key = KeyFor(first);
  EXPECT_EQ(*reader->FindObservation(key, ObservedValues::kRead), nullptr);
  Apply(*store, {SomeBatch(1, {ProbeSpec(), ProbeSpec()}), Finished(1, 1, first)});
  EXPECT_EQ((*reader->FindObservation(key, ObservedValues::kRead))->evaluation.observed(),
            first.observed());
  Apply(*store, {Finished(1, 2, second)});
  const StoredAnswer newest = reader->FindObservation(key, ObservedValues::kRead).value();
  EXPECT_EQ(newest->evaluation.observed(), second.observed());
  EXPECT_EQ(*reader->FindResult(key), nullptr);  // a figure of the same subject is another matter
  key.measured_since = newest->measured_at + Nanos(1);
  EXPECT_EQ(*reader->FindObservation(key, ObservedValues::kRead), nullptr);
  key = KeyFor(first);
  key.compiler.llvm += "x";
  EXPECT_EQ(*reader->FindObservation(key, ObservedValues::kRead), nullptr);
}

TEST_F(ObservationTest, OneInDoubtAnswersNothing) {
  const auto store = OpenStore();
  const auto reader = OpenReader();
  const Evaluation first = Observing(1);
  Evaluation second = first;
  std::get<Observed>(second.verdict).values["clock_mhz"] = 1.0;
  Apply(*store,
        {SomeBatch(1, {ProbeSpec(), ProbeSpec()}), Finished(1, 1, first), Finished(1, 2, second)});
  const ResultKey key = KeyFor(first);
  EXPECT_EQ((*reader->FindObservation(key, ObservedValues::kRead))->evaluation.observed(),
            second.observed());
  Apply(*store,
        {ResultDoubted{.job = {{1}, 1}, .flagged_at = WallTime(Nanos(5)), .reason = "why"}});
  EXPECT_EQ((*reader->FindObservation(key, ObservedValues::kRead))->evaluation.observed(),
            first.observed());
  Apply(*store,
        {ResultDoubted{.job = {{1}, 0}, .flagged_at = WallTime(Nanos(6)), .reason = "why"}});
  EXPECT_EQ(*reader->FindObservation(key, ObservedValues::kRead), nullptr);
  EXPECT_EQ(reader->ReadOutcomes({1}, 0, {.max_rows = 10})->size(), 2U)
      << "its outcome stays as it was told";
  EXPECT_EQ(NumberByHand("SELECT oldest_program FROM writer"), 21);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_observations WHERE suspect = 'why'"), 6);
}

TEST_F(ObservationTest, AnAnswerIsStoredOnce) {
  const auto store = OpenStore();
  const auto reader = OpenReader();
  Apply(*store, {SomeBatch(1, {ProbeSpec()}), Finished(1, 1, Observing(1))});
  const StoredAnswer answer =
      reader->FindObservation(KeyFor(Observing(1)), ObservedValues::kRead).value();
  Apply(*store, {SomeBatch(2, {ProbeSpec(), ProbeSpec()}),
                 JobsAnswered{.finished_at = WallTime(Nanos(5)),
                              .jobs = {{.job = {{2}, 0}, .sequence = 1, .answer = answer}}},
                 Finished(2, 2, answer->evaluation, OutcomeSource::kStored)});
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM observations"), 1);
  const auto outcomes = reader->ReadOutcomes({2}, 0, {.max_rows = 10}).value();
  ASSERT_EQ(outcomes.size(), 2U);
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.evaluation.observed(), Observing(1).observed());
  }
}

// To look for 400 KB of values takes 10 ms. What is written meanwhile has the same values, and
// another row.
TEST_F(ObservationTest, TheRowOfAnAnswerThatJobsShareIsLookedForOnce) {
  constexpr std::uint32_t kFollowers = 1'000;
  Evaluation observing = Observing(1);
  std::get<Observed>(observing.verdict).values["Ir"] = std::string(400'000, 'x');
  const auto answer =
      std::make_shared<const StoredResult>(StoredResult{.evaluation = observing, .worker = "w"});
  const auto following = [&](std::uint32_t first, std::uint32_t count) {
    JobsAnswered answered{.source = OutcomeSource::kCoalesced};
    for (std::uint32_t i = first; i < first + count; ++i) {
      answered.jobs.push_back({.job = {{2}, i}, .sequence = i + 1, .answer = answer});
    }
    return answered;
  };
  const auto store = OpenStore();
  Apply(*store, {SomeBatch(1, {ProbeSpec()}), Finished(1, 1, observing),
                 SomeBatch(2, std::vector<JobSpec>(kFollowers + 1, ProbeSpec())), following(0, 1),
                 Finished(2, 2, observing), following(2, kFollowers - 1)});
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM observations"), 2);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM outcomes WHERE batch = 2 AND result = -1"),
            kFollowers);
  const auto outcomes = OpenReader()->ReadOutcomes({2}, kFollowers, {.max_rows = 1}).value();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].evaluation.observed(), observing.observed());
  EXPECT_EQ(outcomes[0].source, OutcomeSource::kCoalesced);
}

TEST_F(ObservationTest, TheRowOfASharedAnswerIsForgottenWithItsTransaction) {
  const auto answer =
      std::make_shared<const StoredResult>(StoredResult{.evaluation = Observing(1), .worker = "w"});
  const JobsAnswered answered{.source = OutcomeSource::kCoalesced,
                              .jobs = {{.job = {{1}, 0}, .sequence = 1, .answer = answer}}};
  const auto store = OpenStore();
  const JobsAccepted batch = SomeBatch(1, {ProbeSpec(), ProbeSpec()});
  EXPECT_FALSE(store->Apply(std::vector<Write>{batch, answered, Finished(1, 9, Observing(2))}));
  Apply(*store, {batch, answered});
  EXPECT_EQ(OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 9}).value().at(0).evaluation.observed(),
            Observing(1).observed());
}

TEST_F(ObservationTest, ItOutlivesItsBatch) {
  const auto store = OpenStore();
  Apply(*store,
        {SomeBatch(1, {ProbeSpec()}), Finished(1, 1, Observing(1)), SomeBatch(2, {ProbeSpec()})});
  Pruning pass({.finished_before = WallTime::max(), .asked_by = "test"});
  while (!pass.is_over()) ASSERT_TRUE(store->Prune(pass, WallTime(Nanos(9))));
  EXPECT_EQ(pass.count().batches, 1U);
  EXPECT_NE(*OpenReader()->FindObservation(KeyFor(Observing(1)), ObservedValues::kRead), nullptr);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_observations WHERE kind = 'probe' AND "
                         "benchmark = 'probe://peaks-v0' AND name = 'clock_mhz' AND value = 3701"),
            1);
}

TEST_F(ObservationTest, EarlierProgramsMayWriteUntilThereIsOneOrAJobThatTheyCannotRead) {
  const char* const oldest = "SELECT oldest_program FROM writer";
  auto store = OpenStore();
  Apply(*store, {SomeBatch(1, {ProbeSpec(), PlainSpec(2)})});
  EXPECT_LT(NumberByHand(oldest), 14);
  Apply(*store, {Finished(1, 1, Observing(1))});
  EXPECT_EQ(NumberByHand(oldest), 14);
  store.reset();
  RunByHand("UPDATE writer SET oldest_program = 12");
  store = OpenStore();
  JobSpec passes{.source = looptree::BenchmarkUri{"generator://csmith-v0/0"}};
  passes.passes = {"-gvn"};
  Apply(*store, {SomeBatch(2, {passes})});
  EXPECT_EQ(NumberByHand(oldest), 14);
  JobSpec profile = PlainSpec(2);
  profile.profile = ProfileLevel::kRoots;
  Apply(*store, {SomeBatch(3, {profile})});
  EXPECT_EQ(NumberByHand(oldest), 17);
}

TEST_F(ObservationTest, ValuesThatJsonCannotSayAreRefused) {
  const auto store = OpenStore();
  Evaluation infinite = Observing(1);
  std::get<Observed>(infinite.verdict).values["clock_mhz"] =
      std::numeric_limits<double>::infinity();
  Evaluation garbled = Observing(1);
  std::get<Observed>(garbled.verdict).values["text"] = std::string("\xff");
  Evaluation aimless = Observing(1);
  aimless.subject.reset();
  Apply(*store, {SomeBatch(1, {ProbeSpec()})});
  for (const Evaluation& bad : {infinite, garbled, aimless}) {
    const Status applied = store->Apply(std::vector<Write>{Finished(1, 1, bad)});
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().kind, ErrorKind::kInvalid);
  }
  Apply(*store, {Finished(1, 1, Observing(1))});
}

TEST_F(ObservationTest, DamageIsFoundAndHarmsNoOther) {
  auto store = OpenStore();
  Apply(*store, {SomeBatch(1, {ProbeSpec(), ProbeSpec()}), Finished(1, 1, Observing(1)),
                 Finished(1, 2, Observing(2))});
  store.reset();
  EXPECT_TRUE(CheckDatabase(path()).value().ok());
  RunByHand("UPDATE observations SET worker = 'another' WHERE id = 1");
  EXPECT_FALSE(CheckDatabase(path()).value().ok());
  store = OpenStore();
  const auto outcomes = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value();
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].evaluation.failure().code, FailureCode::kStorageCorrupt);
  EXPECT_EQ(outcomes[1].evaluation.observed(), Observing(2).observed());
}

}  // namespace
}  // namespace loopfleet::storage
