// What is written is read back, whole groups or nothing, and a restart goes on where it was.

#include "storage/store.h"

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
  MustApply({JobFinished{outcomes[2]}});  // measured anew: a row of its own, however equal
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
  keyless.tree_key.reset();
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
  // It has a deadline, and its time goes on.
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
  MustApply({JobFinished{SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(2),
                                     BareFailure(FailureCode::kExpired))}});
  EXPECT_TRUE(store_->Recover().value().unfinished.empty());
  ExpectRefused({BatchClosed{{9}}}, ErrorKind::kInvalid, "no batch 9");
}

TEST_F(StoreTest, TheFileIsForItsOwnerOnly) {
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path()).permissions(), perms::owner_read | perms::owner_write);
}

}  // namespace
}  // namespace loopfleet::storage
