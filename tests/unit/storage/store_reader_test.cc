// Reading beside the writer: what is committed is seen, and nothing else.

#include "storage/sqlite/sqlite_reader.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class StoreReaderTest : public ScratchDatabase {
 protected:
  void MustApply(std::vector<Write> writes) {
    const Status status = store_->Apply(writes);
    ASSERT_TRUE(status) << status.error().message;
  }

  std::unique_ptr<SqliteStore> store_ = OpenStore();
  std::unique_ptr<StoreReader> reader_ = OpenReader();
};

TEST_F(StoreReaderTest, NothingIsThereAtFirst) {
  EXPECT_FALSE(reader_->NewestBatch().value());
  EXPECT_FALSE(reader_->FindBatch({1}).value());
  EXPECT_TRUE(reader_->ListBatches(10).value().empty());
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 0, {.max_rows = 10}).value().empty());
  EXPECT_FALSE(reader_->FindResult(KeyFor(SomeMeasurement(1))).value());
}

TEST_F(StoreReaderTest, OutcomesComeInPages) {
  std::vector<JobSpec> specs;
  std::vector<Write> writes;
  std::vector<Outcome> outcomes;
  for (std::uint32_t i = 0; i < 10; ++i) {
    specs.push_back(PlainSpec(2));
    outcomes.push_back(
        SomeOutcome({.index = 9 - i, .sequence = i + 1}, specs.back(), SomeMeasurement(1)));
    writes.push_back(JobFinished{outcomes.back()});
  }
  MustApply({SomeBatch(1, specs), SomeBatch(2, {PlainSpec(2)})});
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 0, {.max_rows = 10}).value().empty());
  MustApply(writes);
  const auto page = reader_->ReadOutcomes({1}, 4, {.max_rows = 3}).value();
  EXPECT_EQ(page, std::vector(outcomes.begin() + 4, outcomes.begin() + 7));
  EXPECT_EQ(reader_->ReadOutcomes({1}, 7, {.max_rows = 100}).value().size(), 3u);
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 10, {.max_rows = 100}).value().empty());
  EXPECT_TRUE(reader_->ReadOutcomes({2}, 0, {.max_rows = 100}).value().empty());
}

TEST_F(StoreReaderTest, AfterAPlaceBeyondAllRowsThereAreNone) {
  MustApply({SomeBatch(1, {PlainSpec(2)}),
             JobFinished{SomeOutcome({}, PlainSpec(2), SomeMeasurement(1))}});
  for (const std::uint64_t beyond : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    const auto page = reader_->ReadOutcomes({1}, beyond, {.max_rows = 10});
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_TRUE(page->empty());
    EXPECT_TRUE(
        reader_->ListOutcomes({{1}, beyond}, {.max_rows = 10}, "").value().outcomes.empty());
    EXPECT_TRUE(
        reader_->ListOutcomes({{beyond}, 0}, {.max_rows = 10}, "").value().outcomes.empty());
  }
}

TEST_F(StoreReaderTest, BatchesComeNewestFirst) {
  for (std::uint64_t id = 1; id <= 3; ++id) MustApply({SomeBatch(id, {PlainSpec(2)})});
  const auto batches = reader_->ListBatches(2).value();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].batch, BatchId{3});
  EXPECT_EQ(batches[1].batch, BatchId{2});
  EXPECT_EQ(reader_->NewestBatch().value()->batch, BatchId{3});
  JobsAccepted audit = SomeBatch(4, {PlainSpec(2)});
  audit.client = Uuid{};
  MustApply({audit});
  EXPECT_EQ(reader_->ListBatches(1).value().front().batch, BatchId{4});
  EXPECT_EQ(reader_->NewestBatch().value()->batch, BatchId{3}) << "audits are nobody's batches";
}

// SomeMeasurement has a spread of 0.004, and grade B.
TEST_F(StoreReaderTest, AResultAnswersNothingMorePreciseOrNewerThanItIs) {
  MustApply({SomeBatch(1, {PlainSpec(2)}),
             JobFinished{SomeOutcome({}, PlainSpec(2), SomeMeasurement(1))}});
  ResultKey key = KeyFor(SomeMeasurement(1));
  key.precision = 0.004;
  EXPECT_TRUE(reader_->FindResult(key).value());
  key.precision = 0.0039;
  EXPECT_FALSE(reader_->FindResult(key).value());
  key.precision = 0;
  key.measured_since = SomeOutcome({}, PlainSpec(2), SomeMeasurement(1)).finished_at;
  EXPECT_TRUE(reader_->FindResult(key).value());
  key.measured_since += Nanos(1);
  EXPECT_FALSE(reader_->FindResult(key).value());
}

TEST_F(StoreReaderTest, GradeCIsPreciseByChanceOnly) {
  Evaluation contended = SomeMeasurement(1);
  std::get<Measurement>(contended.verdict).grade = Grade::kC;
  MustApply({SomeBatch(1, {PlainSpec(2)}), JobFinished{SomeOutcome({}, PlainSpec(2), contended)}});
  ResultKey key = KeyFor(contended);
  key.precision = 0.01;
  EXPECT_FALSE(reader_->FindResult(key).value());
  key.precision = 0;
  EXPECT_TRUE(reader_->FindResult(key).value());
}

TEST_F(StoreReaderTest, SuspectedResultsAnswerNothingAndStayAsTheyWereTold) {
  const auto outcome = [](std::uint32_t index, std::uint8_t tree, int second, std::string worker) {
    Outcome made =
        SomeOutcome({.index = index, .sequence = index + 1}, PlainSpec(2), SomeMeasurement(tree));
    made.finished_at = WallTime(std::chrono::seconds(1'700'000'000 + second));
    made.worker = std::move(worker);
    return JobFinished{made};
  };
  MustApply({SomeBatch(1, {PlainSpec(2), PlainSpec(2), PlainSpec(2), PlainSpec(2)}),
             outcome(0, 1, 10, "a"), outcome(1, 2, 20, "a"), outcome(2, 3, 21, "b"),
             outcome(3, 4, 22, "a")});
  MustApply({ResultsSuspected{.worker = "a",
                              .since = WallTime(std::chrono::seconds(1'700'000'020)),
                              .flagged_at = WallTime(std::chrono::seconds(1'700'000'030)),
                              .reason = "it drifted"}});
  const auto answers = [&](std::uint8_t tree) {
    return reader_->FindResult(KeyFor(SomeMeasurement(tree))).value() != nullptr;
  };
  EXPECT_TRUE(answers(1));  // measured before
  EXPECT_FALSE(answers(2));
  EXPECT_TRUE(answers(3));  // another worker's
  EXPECT_FALSE(answers(4));
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 1, {.max_rows = 1}).value().at(0).evaluation.ok());
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE suspect = 'it drifted'"), 2);
  // Measured again, it answers.
  MustApply({SomeBatch(2, {PlainSpec(2)})});
  Outcome anew = SomeOutcome({.batch = 2}, PlainSpec(2), SomeMeasurement(2));
  std::get<Measurement>(anew.evaluation.verdict).elapsed_ns += 1;
  anew.finished_at = WallTime(std::chrono::seconds(1'700'000'040));
  MustApply({JobFinished{anew}});
  EXPECT_TRUE(answers(2));
}

TEST_F(StoreReaderTest, TheReferenceClockOfAClassIsItsFirst) {
  Evaluation later = SomeMeasurement(2);
  later.conditions->hardware.clock_mhz = 9999;
  MustApply({SomeBatch(1, {PlainSpec(2), PlainSpec(2)}),
             JobFinished{SomeOutcome({}, PlainSpec(2), SomeMeasurement(1))},
             JobFinished{SomeOutcome({.index = 1, .sequence = 2}, PlainSpec(2), later)}});
  const auto clocks = store_->Recover()->reference_clocks;
  ASSERT_EQ(clocks.size(), 1u);
  EXPECT_EQ(clocks[0].hardware_class, SomeConditions().hardware.hardware_class);
  EXPECT_EQ(clocks[0].mhz, SomeConditions().hardware.clock_mhz);
}

TEST_F(StoreReaderTest, AResultAnswersOnlyItsFullTuple) {
  MustApply({SomeBatch(1, {PlainSpec(2)}),
             JobFinished{SomeOutcome({}, PlainSpec(2), SomeMeasurement(1))}});
  const ResultKey key = KeyFor(SomeMeasurement(1));
  const auto found = reader_->FindResult(key).value();
  ASSERT_TRUE(found);
  Evaluation expected = SomeMeasurement(1);
  expected.stages = {};
  EXPECT_EQ(found->evaluation, expected);
  EXPECT_EQ(found->worker, "worker-1");
  EXPECT_EQ(found->measured_at, SomeOutcome({}, PlainSpec(2), SomeMeasurement(1)).finished_at);

  const auto expect_none = [&](auto change) {
    ResultKey other = key;
    change(other);
    EXPECT_FALSE(reader_->FindResult(other).value());
  };
  expect_none([](ResultKey& other) { other.subject = SomeKey(2); });
  expect_none([](ResultKey& other) { other.hardware_class += "x"; });
  expect_none([](ResultKey& other) { other.compiler.llvm = "20.1.0"; });
  expect_none([](ResultKey& other) { other.compiler.tier = "fast"; });
  expect_none([](ResultKey& other) { other.compiler.revision = "2"; });
  expect_none([](ResultKey& other) { other.threads = 1; });
  expect_none([](ResultKey& other) { other.cache = CacheState::kWarm; });
  expect_none([](ResultKey& other) { other.policy = "another"; });
}

TEST_F(StoreReaderTest, TheLatestResultOfAnyHostOfTheClassAnswers) {
  Evaluation later = SomeMeasurement(1);
  later.conditions->hardware.host = "host-2";
  std::get<Measurement>(later.verdict).elapsed_ns = 77;
  MustApply(
      {SomeBatch(1, {PlainSpec(2), PlainSpec(2), PlainSpec(2)}),
       JobFinished{SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(2), SomeMeasurement(1))},
       JobFinished{SomeOutcome({.index = 1, .sequence = 2}, PlainSpec(2), later)}});
  EXPECT_EQ(reader_->FindResult(KeyFor(later)).value()->evaluation.measurement().elapsed_ns, 77);
}

TEST_F(StoreReaderTest, AFailureNeverAnswers) {
  const Evaluation failure = SomeFailure(FailureCode::kWrongOutput);
  MustApply({SomeBatch(1, {PlainSpec(2)}), JobFinished{SomeOutcome({}, PlainSpec(2), failure)}});
  EXPECT_FALSE(reader_->FindResult(KeyFor(failure)).value());
}

TEST_F(StoreReaderTest, ReadsWhenNobodyWrites) {
  MustApply({SomeBatch(1, {PlainSpec(2)})});
  store_.reset();
  reader_.reset();
  EXPECT_EQ(OpenReader()->FindBatch({1}).value()->job_count, 1u);
}

TEST_F(StoreReaderTest, AMissingFileIsNotMade) {
  const auto reader = SqliteReader::Open(directory() / "none.db");
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(directory() / "none.db"));
}

}  // namespace
}  // namespace loopfleet::storage
