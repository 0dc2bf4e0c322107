// Records round-trip, groups are applied whole or not at all, and a restart continues the work.

#include "storage/store.h"

#include <algorithm>

#include "storage/sqlite/maintenance/database_check.h"
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

  std::unique_ptr<Store> store_ = OpenStore();
  std::unique_ptr<StoreReader> reader_ = OpenReader();
};

TEST_F(StoreTest, SpecsAndOutcomesRoundTrip) {
  const std::vector<JobSpec> specs = {PlainSpec(4), FullSpec(), PlainSpec(8), PlainSpec(9)};
  const std::vector<Outcome> outcomes = {
      SomeOutcome({.index = 1, .sequence = 1}, specs[1], SomeMeasurement(1)),
      SomeOutcome({.index = 0, .sequence = 2, .source = OutcomeSource::kCoalesced}, specs[0],
                  SomeFailure(FailureCode::kRunCrash)),
      SomeOutcome({.index = 3, .sequence = 3}, specs[3], BareFailure(FailureCode::kInvalidAction))};
  MustApply({SomeBatch(1, specs), JobFinished{outcomes[0]}, JobFinished{outcomes[1]}});
  MustApply({JobFinished{outcomes[2]}});

  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, 100).value(), outcomes);
  EXPECT_EQ(reader_->ReadJob({{1}, 1}).value()->spec, specs[1]);
  EXPECT_EQ(reader_->ReadJob({{1}, 1}).value()->outcome, outcomes[0]);
  EXPECT_EQ(reader_->ReadJob({{1}, 2}).value()->spec, specs[2]);
  EXPECT_FALSE(reader_->ReadJob({{1}, 2}).value()->outcome);
  EXPECT_FALSE(reader_->ReadJob({{1}, 4}).value());
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
  EXPECT_EQ(reader_->ReadOutcomes({2}, 0, 10).value(), outcomes);
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
  const auto outcomes = reader->ReadOutcomes({1}, 0, 10).value();
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
  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, 100).value(), outcomes);
  EXPECT_EQ(reader_->FindResult(KeyFor(told)).value()->evaluation.measurement().device,
            told.measurement().device);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM device_states"), 1);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE temperature_c = 61.5 AND "
                         "power_w = 312.25"),
            1);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE temperature_c IS NULL"), 2);
  RunByHand("UPDATE device_states SET power_w = 1");
  const auto damaged = OpenReader()->ReadOutcomes({1}, 0, 100);
  ASSERT_TRUE(damaged) << damaged.error().message;
  EXPECT_FALSE(damaged->at(0).evaluation.ok());  // it fails alone
  EXPECT_EQ(damaged->at(1), outcomes[1]);
}

TEST_F(StoreTest, EveryFailureCodeRoundTrips) {
  std::vector<JobSpec> specs;
  std::vector<Write> writes;
  std::vector<Outcome> outcomes;
  for (const FailureInfo& info : FailureTable()) {
    const auto index = static_cast<std::uint32_t>(specs.size());
    specs.push_back(PlainSpec(2));
    outcomes.push_back(
        SomeOutcome({.index = index, .sequence = index + 1}, specs.back(), SomeFailure(info.code)));
    writes.push_back(JobFinished{outcomes.back()});
  }
  writes.insert(writes.begin(), SomeBatch(1, specs));
  MustApply(writes);
  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, 100).value(), outcomes);
}

TEST_F(StoreTest, RequestsAndCountsRoundTrip) {
  JobsAccepted first = SomeBatch(1, {PlainSpec(2), PlainSpec(3)});
  first.closes_batch = false;
  JobsAccepted second = SomeBatch(1, {PlainSpec(4)});
  second.new_batch = false;
  second.first_index = 2;
  MustApply({first});
  MustApply({second, JobFinished{SomeOutcome({.index = 2}, PlainSpec(4), SomeMeasurement(1))}});
  MustApply({JobFinished{SomeOutcome({.index = 0, .sequence = 2, .source = OutcomeSource::kStored},
                                     PlainSpec(2), SomeMeasurement(1))},
             JobFinished{SomeOutcome({.index = 1, .sequence = 3}, PlainSpec(3),
                                     BareFailure(FailureCode::kExpired))}});

  const auto request = reader_->FindRequest(second.client, second.request_id).value();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->batch, BatchId{1});
  EXPECT_EQ(request->first_index, 2u);
  EXPECT_EQ(request->job_count, 1u);
  EXPECT_EQ(request->request_digest, second.request_digest);
  EXPECT_FALSE(reader_->FindRequest(second.client, Uuid::Random()).value());
  EXPECT_FALSE(reader_->FindRequest(Uuid::Random(), second.request_id).value());

  const auto batch = reader_->FindBatch({1}).value();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->client, first.client);
  EXPECT_EQ(batch->accepted_at, first.accepted_at);
  EXPECT_TRUE(batch->closed);
  EXPECT_FALSE(batch->cancelled);
  EXPECT_EQ(batch->job_count, 3u);
  EXPECT_EQ(batch->finished, 3u);
  EXPECT_EQ(batch->failed, 1u);
  EXPECT_EQ(batch->from_store, 1u);
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
  EXPECT_EQ(reader_->ReadOutcomes({1}, 1, 100).value(), outcomes);
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
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 0, 100).value().empty());
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), 0);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM hardware"), 0);

  MustApply({JobFinished{good}});  // and the store goes on
  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, 100).value(), std::vector{good});
}

TEST_F(StoreTest, ContradictionsAreRefused) {
  const JobsAccepted first = SomeBatch(1, {PlainSpec(2), PlainSpec(3)});
  MustApply({first});
  ExpectRefused({SomeBatch(1, {PlainSpec(2)})}, ErrorKind::kExists, "batch 1");
  JobsAccepted repeated = first;
  repeated.batch = {2};
  ExpectRefused({repeated}, ErrorKind::kExists, "requests");

  JobsAccepted more = SomeBatch(1, {PlainSpec(2)});
  more.new_batch = false;
  more.first_index = 2;
  ExpectRefused({more}, ErrorKind::kInvalid, "closed");
  more.batch = {9};
  ExpectRefused({more}, ErrorKind::kInvalid, "no batch 9");
  JobsAccepted open = SomeBatch(2, {PlainSpec(2)});
  open.closes_batch = false;
  more.batch = {2};
  ExpectRefused({open, more}, ErrorKind::kInvalid, "from index 2 on, but it has 1");

  const auto finish = [](const Finish& where, Evaluation evaluation) {
    return JobFinished{SomeOutcome(where, PlainSpec(2), std::move(evaluation))};
  };
  ExpectRefused({finish({.batch = 9}, SomeMeasurement(1))}, ErrorKind::kInvalid, "no batch 9");
  ExpectRefused({finish({.index = 2}, SomeMeasurement(1))}, ErrorKind::kInvalid, "never accepted");
  ExpectRefused({finish({.sequence = 2}, SomeMeasurement(1))}, ErrorKind::kInvalid, "sequence 2");
  Evaluation keyless = SomeMeasurement(1);
  keyless.subject.reset();
  ExpectRefused({finish({}, keyless)}, ErrorKind::kInvalid, "tree key");
  for (const double senseless : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()}) {
    Evaluation timeless = SomeMeasurement(1);
    std::get<Measurement>(timeless.verdict).elapsed_ns = senseless;
    ExpectRefused({finish({}, timeless)}, ErrorKind::kInvalid, "elapsed_ns");
  }
  ExpectRefused({BatchCancelled{{9}}}, ErrorKind::kInvalid, "no batch 9");
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM outcomes"), 0);
}

TEST_F(StoreTest, ARestartFindsWhatIsUnfinished) {
  EXPECT_EQ(store_->epoch(), 1u);
  EXPECT_EQ(store_->Recover().value().next_batch, 1u);
  JobsAccepted open = SomeBatch(3, {PlainSpec(2)});
  open.closes_batch = false;
  MustApply({SomeBatch(1, {PlainSpec(2)}), SomeBatch(2, {PlainSpec(3), FullSpec(), PlainSpec(5)}),
             open, JobFinished{SomeOutcome({.batch = 1}, PlainSpec(2), SomeMeasurement(1))},
             JobFinished{SomeOutcome({.batch = 2}, PlainSpec(3), SomeMeasurement(1))},
             JobFinished{SomeOutcome({.batch = 3}, PlainSpec(2), SomeMeasurement(1))}});
  Restart();
  const Recovery recovery = store_->Recover().value();
  EXPECT_EQ(recovery.epoch, 2u);
  EXPECT_EQ(recovery.next_batch, 4u);
  ASSERT_EQ(recovery.unfinished.size(), 2u);
  EXPECT_EQ(recovery.unfinished[0].batch, BatchId{2});
  EXPECT_EQ(recovery.unfinished[0].finished, 1u);
  EXPECT_EQ(recovery.unfinished[1].batch, BatchId{3});
  EXPECT_FALSE(recovery.unfinished[1].closed);
  ASSERT_EQ(recovery.jobs.size(), 2u);
  EXPECT_EQ(recovery.jobs[0].job, (JobId{{2}, 1}));
  EXPECT_EQ(recovery.jobs[0].spec, FullSpec());
  // Its deadline counts from its acceptance, across restarts.
  EXPECT_EQ(recovery.jobs[0].accepted_at, SomeBatch(1, {}).accepted_at);
  EXPECT_EQ(recovery.jobs[1].accepted_at, std::nullopt);
  EXPECT_EQ(recovery.jobs[1].job, (JobId{{2}, 2}));
  EXPECT_TRUE(recovery.damaged.empty());
}

TEST_F(StoreTest, ACancelledBatchStillOwesItsOutcomes) {
  JobsAccepted open = SomeBatch(1, {PlainSpec(2), PlainSpec(3)});
  open.closes_batch = false;
  MustApply({open, BatchCancelled{{1}}});
  Restart();
  const Recovery recovery = store_->Recover().value();
  ASSERT_EQ(recovery.unfinished.size(), 1u);
  EXPECT_TRUE(recovery.unfinished[0].cancelled);
  EXPECT_TRUE(recovery.unfinished[0].closed);
  EXPECT_EQ(recovery.jobs.size(), 2u);
  MustApply({JobFinished{SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(2),
                                     BareFailure(FailureCode::kCancelled))},
             JobFinished{SomeOutcome({.index = 1, .sequence = 2}, PlainSpec(3),
                                     BareFailure(FailureCode::kCancelled))}});
  EXPECT_TRUE(store_->Recover().value().unfinished.empty());
}

TEST_F(StoreTest, AClosedBatchTakesNoMoreAndIsOverOnceItsJobsAre) {
  JobsAccepted open = SomeBatch(1, {PlainSpec(2)});
  open.closes_batch = false;
  MustApply({open, BatchClosed{{1}}});
  Restart();
  const Recovery recovery = store_->Recover().value();
  ASSERT_EQ(recovery.unfinished.size(), 1u);
  EXPECT_TRUE(recovery.unfinished[0].closed);
  EXPECT_FALSE(recovery.unfinished[0].cancelled);
  MustApply({JobFinished{
      SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(2), BareFailure(FailureCode::kExpired))}});
  EXPECT_TRUE(store_->Recover().value().unfinished.empty());
  ExpectRefused({BatchClosed{{9}}}, ErrorKind::kInvalid, "no batch 9");
}

TEST_F(StoreTest, TheFileIsForItsOwnerOnly) {
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path()).permissions(), perms::owner_read | perms::owner_write);
}

// ---- drains ----

TEST_F(StoreTest, DrainsStandUntilTheyAreEnded) {
  const WorkersDrained drained{.target = "build-7",
                               .reason = "new memory",
                               .by = "ada@desk",
                               .since = WallTime(std::chrono::seconds(1'700'000'000))};
  MustApply({drained, WorkersDrained{.target = "build-8"}});
  Restart();
  auto drains = store_->Recover().value().drains;
  ASSERT_EQ(drains.size(), 2u);
  EXPECT_EQ(drains[0].target, "build-7");
  EXPECT_EQ(drains[0].reason, "new memory");
  EXPECT_EQ(drains[0].by, "ada@desk");
  EXPECT_EQ(drains[0].since, drained.since);
  MustApply({WorkersResumed{.target = "build-7"}, WorkersResumed{.target = "nobody"}});
  Restart();
  drains = store_->Recover().value().drains;
  ASSERT_EQ(drains.size(), 1u);
  EXPECT_EQ(drains[0].target, "build-8");
}

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

TEST_F(StoreTest, AllOutcomesArePagedByBatchAndSequence) {
  for (std::uint64_t batch = 1; batch <= 3; ++batch) {
    MustApply({SomeBatch(batch, {PlainSpec(1), FullSpec(), PlainSpec(3)})});
    for (std::uint32_t index = 0; index < 3; ++index) {
      const JobSpec spec = index == 1 ? FullSpec() : PlainSpec(static_cast<int>(index) + 1);
      MustApply({JobFinished{
          SomeOutcome({.batch = batch, .index = index, .sequence = index + 1u}, spec,
                      SomeMeasurement(static_cast<std::uint8_t>(10 * batch + index)))}});
    }
  }
  OutcomePlace place;
  std::vector<JobId> seen;
  bool is_end = false;
  for (int page = 0; page < 20 && !is_end; ++page) {
    auto rows = reader_->ListOutcomes(place, 2, "").value();
    EXPECT_LE(rows.outcomes.size(), 2u);
    for (const Outcome& outcome : rows.outcomes) seen.push_back(outcome.job);
    place = rows.next;
    is_end = rows.is_end;
  }
  EXPECT_TRUE(is_end);
  ASSERT_EQ(seen.size(), 9u);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(reader_->ListOutcomes({}, 1, "").value().outcomes.front(),
            reader_->ReadOutcomes({1}, 0, 1).value().front());
  // Returns only matching outcomes, and skipped rows are not read again.
  const auto none = reader_->ListOutcomes({}, 4, "benchmark://no-such-set/").value();
  EXPECT_TRUE(none.outcomes.empty());
  EXPECT_FALSE(none.is_end);
  EXPECT_EQ(none.next.batch, BatchId{2});
  EXPECT_EQ(none.next.sequence, 1u);
  const auto uri = std::get<looptree::BenchmarkUri>(PlainSpec(1).source).text;
  EXPECT_FALSE(reader_->ListOutcomes({}, 9, uri.substr(0, 14)).value().outcomes.empty());
}

TEST_F(StoreTest, AResultInDoubtAnswersNothing) {
  const Evaluation measured = SomeMeasurement(1);
  MustApply({SomeBatch(1, {PlainSpec(4)}), JobFinished{SomeOutcome({}, PlainSpec(4), measured)}});
  EXPECT_TRUE(reader_->FindResult(KeyFor(measured)).value());
  MustApply({ResultDoubted{.job = {{1}, 0}, .reason = "an audit"},
             ResultDoubted{.job = {{9}, 9}, .reason = "there is none"}});
  EXPECT_FALSE(reader_->FindResult(KeyFor(measured)).value());
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 0, 1).value().at(0).evaluation.ok());  // still readable
}

}  // namespace
}  // namespace loopfleet::storage
