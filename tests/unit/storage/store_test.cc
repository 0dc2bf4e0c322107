// Records round-trip, groups are applied whole or not at all, and a restart continues the work.

#include <algorithm>

#include "storage/database_check.h"
#include "storage/sqlite/sqlite_store.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class StoreTest : public ScratchDatabase {
 protected:
  Status Apply(std::vector<Write> writes) { return store_->Apply(writes); }
  void MustApply(std::vector<Write> writes) {
    const Status status = store_->Apply(writes);
    ASSERT_TRUE(status) << status.error().message;
  }
  void ExpectRefused(std::vector<Write> writes, ErrorKind kind, std::string_view text) {
    const Status status = store_->Apply(writes);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, kind) << status.error().message;
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
  }
  void Restart() {
    store_.reset();
    store_ = OpenStore();
  }

  std::unique_ptr<SqliteStore> store_ = OpenStore();
  std::unique_ptr<StoreReader> reader_ = OpenReader();
};

// They know nothing of `foreign_results`.
TEST_F(StoreTest, NoProgramMayWriteThatWouldAnswerWithAnotherCoordinatorsFigure) {
  const char* const oldest = "SELECT oldest_program FROM writer";
  EXPECT_LT(NumberByHand(oldest), 19);
  const auto foreign = std::make_shared<const StoredResult>(
      StoredResult{.evaluation = SomeMeasurement(1),
                   .worker = "far away",
                   .elsewhere = Elsewhere{.coordinator = Uuid::Random(), .job = {{7}, 8}}});
  MustApply({SomeBatch(1, {PlainSpec(2)}),
             JobsAnswered{.jobs = {{.job = {{1}, 0}, .sequence = 1, .answer = foreign}}}});
  EXPECT_EQ(NumberByHand(oldest), 19);
}

// Outcomes answered by a stored result read back with its figures, and each row is sound.
TEST_F(StoreTest, AnswersFromTheStoreRoundTrip) {
  const Evaluation measured = SomeMeasurement(1);
  MustApply({SomeBatch(1, {PlainSpec(2)}), JobFinished{SomeOutcome({}, PlainSpec(2), measured)}});
  const StoredAnswer answer = reader_->FindResult(KeyFor(measured)).value();
  ASSERT_TRUE(answer);
  const std::vector<JobSpec> specs = {PlainSpec(2), FullSpec()};
  JobsAnswered answered{.finished_at = WallTime(Nanos(1'700'000'000'123'456'789))};
  std::vector<Outcome> outcomes;
  for (const std::uint32_t index : {1U, 0U}) {
    answered.jobs.push_back({.job = {{2}, index},
                             .sequence = outcomes.size() + 1,
                             .queued = Nanos(5 + index),
                             .answer = answer});
    Outcome& outcome = outcomes.emplace_back(OutcomeOf(answered, answered.jobs.back()));
    outcome.benchmark = specs[index].source;
    outcome.actions = specs[index].actions;
    outcome.tag = specs[index].tag;
  }
  MustApply({SomeBatch(2, specs), answered});
  EXPECT_EQ(reader_->ReadOutcomes({2}, 0, {.max_rows = 10}).value(), outcomes);
  EXPECT_EQ(reader_->FindBatch({2}).value()->from_store, 2u);
  EXPECT_TRUE(CheckDatabase(path()).value().ok());
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE source = 'stored'"), 2);
}

TEST_F(StoreTest, SameCodeAndGradeDRoundTrip) {
  Evaluation same = SomeMeasurement(1);
  same.same_code = true;
  Evaluation coarse = SomeMeasurement(2);
  std::get<Measurement>(coarse.verdict).grade = Grade::kD;
  const JobSpec spec = PlainSpec(3);
  const std::vector<Write> writes{
      SomeBatch(1, {spec, spec}),
      JobFinished{SomeOutcome({.batch = 1, .index = 0, .sequence = 1}, spec, same)},
      JobFinished{SomeOutcome({.batch = 1, .index = 1, .sequence = 2}, spec, coarse)}};
  const Status applied = store_->Apply(writes);
  ASSERT_TRUE(applied) << applied.error().message;
  const auto reader = OpenReader();
  const auto outcomes = reader->ReadOutcomes({1}, 0, {.max_rows = 10}).value();
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_TRUE(outcomes[0].evaluation.same_code);
  EXPECT_FALSE(outcomes[1].evaluation.same_code);
  EXPECT_EQ(outcomes[1].evaluation.measurement().grade, Grade::kD);
  EXPECT_TRUE(*reader->FindResult(KeyFor(same)));
  EXPECT_FALSE(*reader->FindResult(KeyFor(coarse))) << "grade D answers no later job";
  storage::ResultKey better = KeyFor(same);
  better.min_grade = Grade::kA;
  EXPECT_FALSE(*reader->FindResult(better)) << "it is of grade B";
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE source = 'same_code'"), 1);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_best WHERE grade = 'D'"), 0);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM pragma_integrity_check "
                         "WHERE integrity_check <> 'ok'"),
            0);
}

// A GPU's sensor readings are stored with its results; without readings no row is written.
TEST_F(StoreTest, StatesOfDevicesRoundTrip) {
  const std::vector<JobSpec> specs = {PlainSpec(4), PlainSpec(5), PlainSpec(6)};
  Evaluation told = SomeMeasurement(1);
  told.conditions->hardware.device = DeviceKind::kCuda;
  Evaluation silent = told;
  silent.subject = SomeKey(2);
  std::get<Measurement>(told.verdict).device = DeviceState{.temperature_c = 61.5,
                                                           .power_w = 312.25,
                                                           .memory_clock_mhz = 2619,
                                                           .throttle_reasons = 0x8000000000000044};
  const std::vector<Outcome> outcomes = {
      SomeOutcome({.index = 0, .sequence = 1}, specs[0], told),
      SomeOutcome({.index = 1, .sequence = 2}, specs[1], silent),
      SomeOutcome({.index = 2, .sequence = 3}, specs[2], SomeMeasurement(3))};
  MustApply({SomeBatch(1, specs), JobFinished{outcomes[0]}, JobFinished{outcomes[1]},
             JobFinished{outcomes[2]}});
  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, {.max_rows = 100}).value(), outcomes);
  EXPECT_EQ(reader_->FindResult(KeyFor(told)).value()->evaluation.measurement().device,
            told.measurement().device);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM device_states"), 1);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE temperature_c = 61.5 AND "
                         "power_w = 312.25"),
            1);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE temperature_c IS NULL"), 2);
  RunByHand("UPDATE device_states SET power_w = 1");
  const auto damaged = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 100});
  ASSERT_TRUE(damaged) << damaged.error().message;
  EXPECT_FALSE(damaged->at(0).evaluation.ok());  // it fails alone
  EXPECT_EQ(damaged->at(1), outcomes[1]);
}

TEST_F(StoreTest, AnAnswerFromTheStoreIsNotStoredAgain) {
  MustApply(
      {SomeBatch(1, {PlainSpec(2), PlainSpec(2), PlainSpec(2), PlainSpec(2)}),
       JobFinished{SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(2), SomeMeasurement(1))}});
  Evaluation answer = reader_->FindResult(KeyFor(SomeMeasurement(1))).value()->evaluation;
  Evaluation elsewhere = answer;  // equal figures, but another host's
  elsewhere.conditions->hardware.host = "host-2";
  const std::vector<Outcome> outcomes = {
      SomeOutcome({.index = 1, .sequence = 2, .source = OutcomeSource::kStored}, PlainSpec(2),
                  answer),
      SomeOutcome({.index = 2, .sequence = 3, .source = OutcomeSource::kCoalesced}, PlainSpec(2),
                  elsewhere),
      SomeOutcome({.index = 3, .sequence = 4, .source = OutcomeSource::kMeasured}, PlainSpec(2),
                  answer)};
  MustApply({JobFinished{outcomes[0]}});
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), 1);
  MustApply({JobFinished{outcomes[1]}});
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), 2);
  MustApply({JobFinished{outcomes[2]}});  // measured again: a row of its own, even if equal
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), 3);
  EXPECT_EQ(reader_->ReadOutcomes({1}, 1, {.max_rows = 100}).value(), outcomes);
}

TEST_F(StoreTest, AFailedGroupLeavesNothing) {
  MustApply({SomeBatch(1, {PlainSpec(2), PlainSpec(3)})});
  Outcome good = SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(2), SomeMeasurement(1));
  good.evaluation.conditions->hardware.host = "new-host";
  const Outcome again = SomeOutcome({.index = 0, .sequence = 2}, PlainSpec(2), SomeMeasurement(2));
  ExpectRefused({SomeBatch(2, {PlainSpec(5)}), JobFinished{good}, JobFinished{again}},
                ErrorKind::kExists, "outcomes.idx");
  EXPECT_FALSE(reader_->FindBatch({2}).value());
  EXPECT_EQ(reader_->FindBatch({1}).value()->finished, 0u);
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 0, {.max_rows = 100}).value().empty());
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), 0);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM hardware"), 0);

  MustApply({JobFinished{good}});  // and the store goes on
  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, {.max_rows = 100}).value(), std::vector{good});
}

TEST_F(StoreTest, TheFileIsForItsOwnerOnly) {
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path()).permissions(), perms::owner_read | perms::owner_write);
}

// ---- drains ----

TEST_F(StoreTest, ADamagedDrainStillDrains) {
  MustApply({WorkersDrained{.target = "build-7", .reason = "new memory"}});
  store_.reset();
  RunByHand("UPDATE drains SET reason = 'x'");
  store_ = OpenStore();
  const auto drains = store_->Recover().value().drains;
  ASSERT_EQ(drains.size(), 1u);
  EXPECT_NE(drains[0].reason.find("damaged"), std::string::npos);
}

// ---- all outcomes, page by page ----

}  // namespace
}  // namespace loopfleet::storage
