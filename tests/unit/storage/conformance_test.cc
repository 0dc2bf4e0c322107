// What every engine of the store has to do. The fastest schedules: best_schedules_test.cc.

#include "tests/unit/storage/conformance.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "storage/pruning.h"
#include "storage/thinning.h"
#include "storage/unfinished_jobs.h"

namespace loopfleet::storage {
namespace {

TEST_P(Conformance, SpecsAndOutcomesRoundTrip) {
  const std::vector<JobSpec> specs = {PlainSpec(4), FullSpec(), PlainSpec(8), PlainSpec(9)};
  const std::vector<Outcome> outcomes = {
      SomeOutcome({.index = 1, .sequence = 1}, specs[1], SomeMeasurement(1)),
      SomeOutcome({.index = 0, .sequence = 2, .source = OutcomeSource::kCoalesced}, specs[0],
                  SomeFailure(FailureCode::kRunCrash)),
      SomeOutcome({.index = 3, .sequence = 3}, specs[3], BareFailure(FailureCode::kInvalidAction))};
  MustApply({SomeBatch(1, specs), JobFinished{outcomes[0]}, JobFinished{outcomes[1]}});
  MustApply({JobFinished{outcomes[2]}});

  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, {.max_rows = 100}).value(), outcomes);
  EXPECT_EQ(reader_->ReadJob({{1}, 1}).value()->spec, specs[1]);
  EXPECT_EQ(reader_->ReadJob({{1}, 1}).value()->outcome, outcomes[0]);
  EXPECT_EQ(reader_->ReadJob({{1}, 2}).value()->spec, specs[2]);
  EXPECT_FALSE(reader_->ReadJob({{1}, 2}).value()->outcome);
  EXPECT_FALSE(reader_->ReadJob({{1}, 4}).value());
}

TEST_P(Conformance, EveryFailureCodeRoundTrips) {
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
  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, {.max_rows = 100}).value(), outcomes);
}

TEST_P(Conformance, RequestsAndCountsRoundTrip) {
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

TEST_P(Conformance, ContradictionsAreRefused) {
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
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 0, {.max_rows = 100}).value().empty());
}

TEST_P(Conformance, ARestartFindsWhatIsUnfinished) {
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

TEST_P(Conformance, ACancelledBatchStillOwesItsOutcomes) {
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

TEST_P(Conformance, AClosedBatchTakesNoMoreAndIsOverOnceItsJobsAre) {
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

TEST_P(Conformance, DrainsStandUntilTheyAreEnded) {
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

TEST_P(Conformance, AllOutcomesArePagedByBatchAndSequence) {
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
    auto rows = reader_->ListOutcomes(place, {.max_rows = 2}, "").value();
    EXPECT_LE(rows.outcomes.size(), 2u);
    for (const Outcome& outcome : rows.outcomes) seen.push_back(outcome.job);
    place = rows.next;
    is_end = rows.is_end;
  }
  EXPECT_TRUE(is_end);
  ASSERT_EQ(seen.size(), 9u);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(reader_->ListOutcomes({}, {.max_rows = 1}, "").value().outcomes.front(),
            reader_->ReadOutcomes({1}, 0, {.max_rows = 1}).value().front());
  // Returns only matching outcomes, and skipped rows are not read again.
  const auto none = reader_->ListOutcomes({}, {.max_rows = 4}, "benchmark://no-such-set/").value();
  EXPECT_TRUE(none.outcomes.empty());
  EXPECT_FALSE(none.is_end);
  EXPECT_EQ(none.next.batch, BatchId{2});
  EXPECT_EQ(none.next.sequence, 1u);
  const auto uri = std::get<looptree::BenchmarkUri>(PlainSpec(1).source).text;
  EXPECT_FALSE(
      reader_->ListOutcomes({}, {.max_rows = 9}, uri.substr(0, 14)).value().outcomes.empty());
}

TEST_P(Conformance, BatchesAreListedFromAnyOneOn) {
  MustApply({SomeBatch(2, {PlainSpec(4)}), SomeBatch(5, {}), SomeBatch(7, {PlainSpec(4)})});
  const auto after = [&](std::uint64_t batch, std::uint32_t max) {
    std::vector<BatchId> ids;
    const auto batches = reader_->ListBatchesAfter({batch}, max).value();
    for (const StoredBatch& one : batches) ids.push_back(one.batch);
    return ids;
  };
  EXPECT_EQ(after(0, 9), (std::vector<BatchId>{{2}, {5}, {7}}));
  EXPECT_EQ(after(2, 1), (std::vector<BatchId>{{5}}));
  EXPECT_TRUE(after(7, 9).empty());
  EXPECT_EQ(reader_->Incarnation().value(), store_->incarnation());
}

TEST_P(Conformance, AResultInDoubtAnswersNothing) {
  const Evaluation measured = SomeMeasurement(1);
  MustApply({SomeBatch(1, {PlainSpec(4)}), JobFinished{SomeOutcome({}, PlainSpec(4), measured)}});
  EXPECT_TRUE(reader_->FindResult(KeyFor(measured)).value());
  MustApply({ResultDoubted{.job = {{1}, 0}, .reason = "an audit"},
             ResultDoubted{.job = {{9}, 9}, .reason = "there is none"}});
  EXPECT_FALSE(reader_->FindResult(KeyFor(measured)).value());
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 0, {.max_rows = 1})
                  .value()
                  .at(0)
                  .evaluation.ok());  // still readable
}

// ---- figures of other coordinators

TEST_P(Conformance, AFigureOfAnotherCoordinatorIsKeptAndAnswersNobodyElse) {
  const Evaluation measured = SomeMeasurement(1);
  const auto foreign = std::make_shared<const StoredResult>(
      StoredResult{.evaluation = measured,
                   .worker = "far away",
                   .measured_at = kThen - std::chrono::hours(1),
                   .elsewhere = Elsewhere{.coordinator = Uuid::Random(), .job = {{7}, 8}}});
  JobsAnswered answered{.finished_at = kThen};
  for (std::uint32_t i = 0; i < 2; ++i) {
    answered.jobs.push_back({.job = {{1}, i}, .sequence = i + std::uint64_t{1}, .answer = foreign});
  }
  MustApply({SomeBatch(1, {PlainSpec(4), PlainSpec(4)}), answered});

  const auto outcomes = reader_->ReadOutcomes({1}, 0, {.max_rows = 9}).value();
  ASSERT_EQ(outcomes.size(), 2u);
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.source, OutcomeSource::kStored);
    EXPECT_EQ(outcome.worker, "far away");
    EXPECT_EQ(outcome.evaluation.measurement(), measured.measurement());
  }
  EXPECT_EQ(reader_->FindBatch({1}).value()->from_store, 2u);
  EXPECT_FALSE(Find(measured));
  EXPECT_FALSE(reader_->FindSameCode(measured.code_hash, program_, KeyFor(measured)).value());
  Restart();
  EXPECT_FALSE(Find(measured)) << "nor does it after a restart";

  End(measured, kThen + std::chrono::hours(1));  // one that is measured here does
  ASSERT_TRUE(Find(measured));
  EXPECT_EQ(Find(measured)->worker, "worker-1");
}

TEST_P(Conformance, DoubtsAreListedInTheOrderInWhichTheyCame) {
  const Outcome first = End(SomeMeasurement(1), kThen);
  const Outcome second = End(SomeMeasurement(2), kThen + std::chrono::hours(1), "worker-2");
  const auto foreign = std::make_shared<const StoredResult>(
      StoredResult{.evaluation = SomeMeasurement(3),
                   .worker = "far away",
                   .measured_at = kThen - std::chrono::hours(1),
                   .elsewhere = Elsewhere{.coordinator = Uuid::Random(), .job = {{7}, 8}}});
  MustApply({SomeBatch(1, {PlainSpec(4)}),
             JobsAnswered{.finished_at = kThen,
                          .jobs = {{.job = {{1}, 0}, .sequence = 1, .answer = foreign}}}});
  EXPECT_TRUE(reader_->ListDoubts(0, 9).value().empty());
  MustApply({ResultDoubted{.job = {{1}, 0}, .flagged_at = kThen, .reason = "an audit"}});
  MustApply({ResultsSuspected{.worker = "worker-2", .since = kThen, .reason = "drift"}});
  MustApply({ResultDoubted{.job = first.job, .flagged_at = kThen, .reason = "late"},
             ResultDoubted{.job = first.job, .flagged_at = kThen, .reason = "once more"}});

  const auto doubts = reader_->ListDoubts(0, 9).value();
  ASSERT_EQ(doubts.size(), 3u);
  EXPECT_EQ(doubts[0].worker, "far away");
  EXPECT_EQ(doubts[0].measured_at, kThen - std::chrono::hours(1)) << "when it was measured there";
  EXPECT_EQ(doubts[0].subject, *SomeMeasurement(3).subject);
  EXPECT_EQ(doubts[1].worker, "worker-2");
  EXPECT_EQ(doubts[1].measured_at, second.finished_at);
  EXPECT_EQ(doubts[1].reason, "drift");
  EXPECT_EQ(doubts[2].subject, *first.evaluation.subject);
  EXPECT_EQ(doubts[2].flagged_at, kThen);
  EXPECT_EQ(doubts[2].reason, "late");

  const auto later = reader_->ListDoubts(doubts[0].number, 1).value();
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].number, doubts[1].number);
  EXPECT_TRUE(reader_->ListDoubts(doubts[2].number, 9).value().empty());
}

TEST_P(Conformance, TheFigureThatAnOutcomeRepeatsIsNamed) {
  const Outcome original = End(SomeMeasurement(1), kThen, "worker-2");
  const auto repeated = [&](const JobId& job) {
    return reader_->RepeatedFigure({.batch = job.batch, .sequence = 1}).value();
  };
  EXPECT_EQ(repeated(original.job), std::nullopt);
  EXPECT_EQ(reader_->RepeatedFigure({.batch = {9'999}, .sequence = 1}).value(), std::nullopt);
  const FigureName name{
      .subject = *original.evaluation.subject, .worker = "worker-2", .measured_at = kThen};

  Evaluation copy = SomeMeasurement(2);
  copy.verdict = original.evaluation.verdict;
  copy.code_hash = original.evaluation.code_hash;
  copy.same_code = true;
  EXPECT_EQ(repeated(End(copy, kThen + std::chrono::hours(1)).job), name);

  const StoredAnswer answer = Find(original.evaluation);
  ASSERT_TRUE(answer);
  const auto foreign = std::make_shared<const StoredResult>(
      StoredResult{.evaluation = SomeMeasurement(3),
                   .worker = "far away",
                   .measured_at = kThen - std::chrono::hours(1),
                   .elsewhere = Elsewhere{.coordinator = Uuid::Random(), .job = {{7}, 8}}});
  const WallTime later = kThen + std::chrono::hours(2);
  MustApply({SomeBatch(1, {PlainSpec(4)}), SomeBatch(2, {PlainSpec(4)}),
             JobsAnswered{.finished_at = later,
                          .jobs = {{.job = {{1}, 0}, .sequence = 1, .answer = answer},
                                   {.job = {{2}, 0}, .sequence = 1, .answer = foreign}}}});
  EXPECT_EQ(repeated({{1}, 0}), name);
  EXPECT_EQ(repeated({{2}, 0}), (FigureName{.subject = *SomeMeasurement(3).subject,
                                            .worker = "far away",
                                            .measured_at = kThen - std::chrono::hours(1)}));
}

TEST_P(Conformance, AFailedGroupLeavesNothing) {
  MustApply({SomeBatch(1, {PlainSpec(2), PlainSpec(3)})});
  const Outcome good = SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(2), SomeMeasurement(1));
  const Outcome again = SomeOutcome({.index = 0, .sequence = 2}, PlainSpec(2), SomeMeasurement(2));
  ExpectRefused({SomeBatch(2, {PlainSpec(5)}), WorkersDrained{.target = "build-7"},
                 JobFinished{good}, JobFinished{again}},
                ErrorKind::kExists, "outcomes.idx");
  EXPECT_FALSE(reader_->FindBatch({2}).value());
  EXPECT_FALSE(reader_->ReadJob({{2}, 0}).value());
  EXPECT_EQ(reader_->FindBatch({1}).value()->finished, 0u);
  EXPECT_TRUE(reader_->ReadOutcomes({1}, 0, {.max_rows = 100}).value().empty());
  EXPECT_FALSE(Find(SomeMeasurement(1)));
  EXPECT_TRUE(store_->RecoverBatches().value().drains.empty());

  MustApply({JobFinished{good}});  // and the store goes on
  EXPECT_EQ(reader_->ReadOutcomes({1}, 0, {.max_rows = 100}).value(), std::vector{good});
}

TEST_P(Conformance, UnfinishedJobsAreReadInPieces) {
  MustApply({SomeBatch(1, std::vector<JobSpec>(5, PlainSpec(2))), SomeBatch(2, {FullSpec()}),
             JobFinished{SomeOutcome({.index = 2}, PlainSpec(2), SomeMeasurement(1))}});
  Restart();
  const auto cursor = reader_->ReadUnfinished(store_->RecoverBatches().value().unfinished);
  std::vector<UnfinishedJob> jobs;
  std::vector<JobId> damaged;
  ASSERT_TRUE(cursor->Read(2, jobs, damaged));
  EXPECT_EQ(jobs.size(), 2u);
  EXPECT_FALSE(cursor->ReadOutOfOrder({{1}, 0}).value()) << "it was read";
  EXPECT_FALSE(cursor->ReadOutOfOrder({{1}, 2}).value()) << "it has finished";
  EXPECT_EQ(cursor->ReadOutOfOrder({{2}, 0}).value()->spec, FullSpec());
  while (!cursor->at_end()) ASSERT_TRUE(cursor->Read(2, jobs, damaged));
  std::vector<JobId> ids;
  for (const UnfinishedJob& job : jobs) ids.push_back(job.job);
  EXPECT_EQ(ids, (std::vector<JobId>{{{1}, 0}, {{1}, 1}, {{1}, 3}, {{1}, 4}, {{2}, 0}}));
  EXPECT_TRUE(damaged.empty());
}

TEST_P(Conformance, TheNewestFigureThatIsGoodEnoughAnswers) {
  Evaluation coarse = SomeMeasurement(1);
  Evaluation fine = SomeMeasurement(1);
  auto& measured = std::get<Measurement>(coarse.verdict);
  measured.grade = Grade::kC;
  measured.spread = 0.2;
  measured.elapsed_ns = 77;
  End(fine, kThen);
  End(coarse, kThen + std::chrono::hours(1));
  ResultKey key = KeyFor(fine);
  EXPECT_EQ(reader_->FindResult(key).value()->evaluation.measurement().elapsed_ns, 77);
  key.precision = 0.1;
  EXPECT_EQ(reader_->FindResult(key).value()->evaluation.measurement().grade, Grade::kB);
  key.precision = 0;
  key.min_grade = Grade::kB;
  EXPECT_EQ(reader_->FindResult(key).value()->measured_at, kThen);
  key.measured_since = kThen + std::chrono::minutes(1);
  EXPECT_FALSE(reader_->FindResult(key).value());
  key = KeyFor(fine);
  key.threads = 7;
  EXPECT_FALSE(reader_->FindResult(key).value());
}

TEST_P(Conformance, AnAnswerFromTheStoreIsItsResult) {
  End(SomeMeasurement(1));
  const StoredAnswer answer = Find(SomeMeasurement(1));
  ASSERT_TRUE(answer);
  JobsAnswered answered{.finished_at = kThen};
  answered.jobs.push_back({.job = {{200}, 0}, .sequence = 1, .queued = Nanos(5), .answer = answer});
  MustApply({SomeBatch(200, {PlainSpec(4)}), answered});
  const Outcome read = reader_->ReadOutcomes({200}, 0, {.max_rows = 10}).value().at(0);
  EXPECT_EQ(read.source, OutcomeSource::kStored);
  EXPECT_EQ(read.evaluation.measurement(), answer->evaluation.measurement());
  EXPECT_EQ(reader_->FindBatch({200}).value()->from_store, 1u);
  EXPECT_EQ(Find(SomeMeasurement(1))->row, answer->row) << "there is no second one";
}

TEST_P(Conformance, WhatIsSuspectedAnswersNothing) {
  const Evaluation before = SomeMeasurement(1);
  const Evaluation after = SomeMeasurement(2);
  const Evaluation others = SomeMeasurement(3);
  End(before, kThen);
  End(after, kThen + std::chrono::hours(2));
  End(others, kThen + std::chrono::hours(2), "worker-2");
  MustApply({ResultsSuspected{.worker = "worker-1",
                              .since = kThen + std::chrono::hours(1),
                              .flagged_at = kThen + std::chrono::hours(3),
                              .reason = "it drifted"}});
  EXPECT_TRUE(Find(before));
  EXPECT_FALSE(Find(after));
  EXPECT_TRUE(Find(others));
  for (int step = 0; store_->HasMoreToFlag() && step < 100; ++step) {
    ASSERT_TRUE(store_->FlagMore());
  }
  EXPECT_FALSE(store_->HasMoreToFlag());
  EXPECT_FALSE(Find(after));
  End(after, kThen + std::chrono::hours(4));
  EXPECT_TRUE(Find(after)) << "a later one is not suspected";
}

TEST_P(Conformance, TwoHostsSettleAFailure) {
  Evaluation failure = SomeFailure(FailureCode::kRunCrash);
  const StoreReader::FailureQuery question{.key = KeyFor(failure), .now = kThen};
  const auto finish_on = [&](const std::string& host, const std::string& worker) {
    failure.conditions->hardware.host = host;
    End(failure, kThen, worker);
  };
  finish_on("host-1", "worker-1");
  EXPECT_FALSE(reader_->FindFailure(question).value());
  finish_on("host-1", "worker-2");
  EXPECT_FALSE(reader_->FindFailure(question).value()) << "one host";
  finish_on("host-2", "worker-3");
  const StoredAnswer known = reader_->FindFailure(question).value();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->evaluation.failure().code, FailureCode::kRunCrash);
  Restart();
  EXPECT_TRUE(reader_->FindFailure(question).value());
  EXPECT_EQ(store_->ForgetFailures({.of = "host-2"}).value(), 1u);
  EXPECT_FALSE(reader_->FindFailure(question).value());
}

TEST_P(Conformance, ACutAnswersForItsBoundAndLowerOnes) {
  const Evaluation cut = SomeFailure(FailureCode::kCut);
  Outcome outcome = SomeOutcome({}, PlainSpec(4), cut);
  MustApply({SomeBatch(1, {PlainSpec(4)}), JobFinished{.outcome = outcome, .cut_above_ns = 1000}});
  const auto answers = [&](std::uint64_t bound) {
    return reader_->FindFailure({.key = KeyFor(cut), .cut_above_ns = bound, .now = kThen})
               .value() != nullptr;
  };
  EXPECT_TRUE(answers(1000));
  EXPECT_TRUE(answers(10));
  EXPECT_FALSE(answers(1001));
  EXPECT_FALSE(answers(0)) << "the job has no bound";
  MustApply({ResultDoubted{.job = {{1}, 0}, .reason = "a test"}});
  EXPECT_FALSE(answers(10));
}

TEST_P(Conformance, AFigureAnswersForItsMachineCode) {
  Evaluation original = SomeMeasurement(1);
  const Outcome measured = End(original, kThen);
  Evaluation copy = SomeMeasurement(2);
  copy.same_code = true;
  copy.verdict = original.verdict;
  End(copy, kThen + std::chrono::hours(1), "a copying worker");
  ResultKey key = KeyFor(SomeMeasurement(3));
  const StoredAnswer found = reader_->FindSameCode(original.code_hash, program_, key).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evaluation.subject, original.subject) << "a copy answers for no other code";
  EXPECT_FALSE(reader_->FindSameCode("other", program_, key).value());
  EXPECT_FALSE(reader_->FindSameCode(original.code_hash, SomeKey(51), key).value());
  key = KeyFor(copy);
  EXPECT_TRUE(reader_->FindResult(key).value());
  key.measured_since = kThen + std::chrono::minutes(1);
  EXPECT_FALSE(reader_->FindResult(key).value()) << "a copy is as old as its original";
  MustApply({ResultsSuspected{
      .worker = "a copying worker", .since = kThen, .reason = "it measured nothing"}});
  EXPECT_TRUE(Find(copy));
  MustApply({ResultDoubted{.job = measured.job, .reason = "a test"}});
  EXPECT_FALSE(Find(copy)) << "and as doubtful";
}

// What a worker in quarantine copied is stored so
// (Core.AFigureThatAWorkerInQuarantineCopiedIsInDoubtAndOfGradeC).
TEST_P(Conformance, ADoubtedCopyOfGradeCIsAllThatIsInDoubt) {
  const Evaluation original = SomeMeasurement(1);
  End(original, kThen, "worker-2");
  Evaluation copy = SomeMeasurement(2);
  copy.same_code = true;
  copy.verdict = original.verdict;
  std::get<Measurement>(copy.verdict).grade = Grade::kC;
  const Outcome copied = SomeOutcome({}, PlainSpec(4), copy);
  MustApply({SomeBatch(1, {PlainSpec(4)}), JobFinished{.outcome = copied, .in_doubt = true},
             ResultDoubted{.job = copied.job, .reason = "its worker was in quarantine"}});
  EXPECT_FALSE(Find(copy));
  ASSERT_TRUE(Find(original));
  EXPECT_EQ(Find(original)->worker, "worker-2");
  ResultKey other = KeyFor(original);
  other.subject = SomeKey(3);
  EXPECT_TRUE(reader_->FindSameCode(original.code_hash, program_, other).value());
  const auto doubts = reader_->ListDoubts(0, 9).value();
  ASSERT_EQ(doubts.size(), 1u);
  EXPECT_EQ(doubts[0].subject, copy.subject);
}

TEST_P(Conformance, ObservedValuesAnswerToo) {
  Evaluation observed{.verdict = Observed{.values = {{"IrInstructionCount", 42.0}}},
                      .subject = SomeKey(9),
                      .conditions = SomeConditions()};
  const Outcome outcome = End(observed);
  EXPECT_EQ(reader_->ReadOutcomes(outcome.job.batch, 0, {.max_rows = 1}).value().at(0), outcome);
  const StoredAnswer found =
      reader_->FindObservation(KeyFor(observed), ObservedValues::kRead).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evaluation.observed(), observed.observed());
  EXPECT_LT(found->row, 0);
  EXPECT_FALSE(reader_->FindObservation(KeyFor(SomeMeasurement(8)), ObservedValues::kRead).value());
}

TEST_P(Conformance, AReadEndsWithTheOutcomeThatReachesItsBytes) {
  constexpr std::uint32_t kJobs = 20;
  const Evaluation wide{.verdict = Observed{.values = {{"Ir", std::string(500'000, 'x')}}},
                        .subject = SomeKey(9),
                        .conditions = SomeConditions()};
  End(wide);
  const StoredAnswer answer =
      reader_->FindObservation(KeyFor(wide), ObservedValues::kLeftOut).value();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->evaluation.observed().values.empty());
  JobsAnswered answered;
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    answered.jobs.push_back({.job = {{1}, i}, .sequence = i + 1, .answer = answer});
  }
  MustApply({SomeBatch(1, std::vector<JobSpec>(kJobs, PlainSpec(4))), answered});
  ReadBounds bounds{.max_rows = 128, .max_bytes = std::size_t{1} << 20};
  const auto page = reader_->ReadOutcomes({1}, 0, bounds).value();
  ASSERT_EQ(page.size(), 3u);
  EXPECT_EQ(page[2].evaluation.observed(), wide.observed());
  const auto rows = reader_->ListOutcomes({}, bounds, "").value();
  EXPECT_EQ(rows.outcomes, page);
  EXPECT_EQ(rows.next.sequence, 3u);
  EXPECT_FALSE(rows.is_end);
  bounds.observed = ObservedValues::kLeftOut;
  const auto all = reader_->ReadOutcomes({1}, 0, bounds).value();
  ASSERT_EQ(all.size(), kJobs);
  for (const Outcome& outcome : all) {
    EXPECT_EQ(outcome.evaluation.subject, SomeKey(9));
    EXPECT_TRUE(outcome.evaluation.observed().values.empty());
  }
}

TEST_P(Conformance, TheNewestComeFirst) {
  JobsAccepted own = SomeBatch(3, {PlainSpec(2)});
  own.client = Uuid();
  MustApply({SomeBatch(1, {PlainSpec(2)}), SomeBatch(2, {PlainSpec(2), PlainSpec(3)}), own,
             JobFinished{SomeOutcome({.batch = 2, .index = 1}, PlainSpec(3), SomeMeasurement(1))},
             JobFinished{SomeOutcome({.batch = 2, .index = 0, .sequence = 2}, PlainSpec(2),
                                     SomeMeasurement(2))},
             JobFinished{SomeOutcome({.batch = 1}, PlainSpec(2), SomeMeasurement(1))}});
  const auto batches = reader_->ListBatches(2).value();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].batch, BatchId{3});
  EXPECT_EQ(reader_->NewestBatch().value()->batch, BatchId{2}) << "the coordinator's do not count";
  const auto newest = reader_->NewestOutcomes(2).value();
  ASSERT_EQ(newest.outcomes.size(), 2u);
  EXPECT_EQ(newest.outcomes[0].job, (JobId{{2}, 0}));
  EXPECT_EQ(newest.outcomes[1].job, (JobId{{2}, 1}));
  EXPECT_FALSE(newest.is_all);
  EXPECT_TRUE(reader_->NewestOutcomes(9).value().is_all);
}

TEST_P(Conformance, BatchesThatRunAreListedHoweverManyCameSince) {
  MustApply({SomeBatch(1, {PlainSpec(2)}), SomeBatch(2, {PlainSpec(2)})});
  for (std::uint64_t id = 3; id <= 9; ++id) {
    MustApply({SomeBatch(id, {PlainSpec(2)}),
               JobFinished{SomeOutcome({.batch = {id}}, PlainSpec(2), SomeMeasurement(1))}});
  }
  const auto listed = [&](std::uint32_t max) {
    std::vector<std::uint64_t> ids;
    const auto batches = reader_->ListBatches(max).value();
    for (const StoredBatch& batch : batches) ids.push_back(batch.batch.value);
    return ids;
  };
  EXPECT_EQ(listed(4), (std::vector<std::uint64_t>{9, 8, 2, 1}));
  EXPECT_EQ(listed(3), (std::vector<std::uint64_t>{9, 8, 2}));
  EXPECT_EQ(listed(1), std::vector<std::uint64_t>{9});
  EXPECT_EQ(listed(20).size(), 9u);
}

TEST_P(Conformance, EachStartHasAnEpochAndTheSameIncarnation) {
  const Uuid incarnation = store_->incarnation();
  EXPECT_FALSE(incarnation.is_nil());
  Restart();
  EXPECT_EQ(store_->epoch(), 2u);
  EXPECT_EQ(store_->incarnation(), incarnation);
}

// ---- what is removed

TEST_P(Conformance, ThinnedResultsKeepTheirFigures) {
  const Outcome old = End(SomeMeasurement(1), kThen);
  const Outcome young = End(SomeMeasurement(2), kThen + std::chrono::hours(2));
  const ThinningRule rule{.measured_before = kThen + std::chrono::hours(1), .keep_every = 2};
  const ThinningCount would = reader_->CountThinning(rule).value();
  Thinning pass(rule, Thinning::Scope::kAll);
  while (!pass.is_over()) ASSERT_TRUE(store_->Thin(pass, kThen));
  const Measurement& before = old.evaluation.measurement();
  EXPECT_EQ(pass.count().results, 1u);
  EXPECT_EQ(pass.count().samples, before.samples_ns.size() / 2);
  EXPECT_EQ(would.results, pass.count().results);
  EXPECT_EQ(would.samples, pass.count().samples);
  EXPECT_EQ(would.bytes, pass.count().bytes);

  Restart();
  Measurement left = before;
  RemoveSamples(rule, left);
  EXPECT_EQ(reader_->ReadOutcomes(old.job.batch, 0, {.max_rows = 1})
                .value()
                .at(0)
                .evaluation.measurement(),
            left);
  EXPECT_EQ(Find(old.evaluation)->evaluation.measurement(), left);
  EXPECT_EQ(reader_->ReadOutcomes(young.job.batch, 0, {.max_rows = 1}).value().at(0), young);
  Thinning again(rule, Thinning::Scope::kNew);
  while (!again.is_over()) ASSERT_TRUE(store_->Thin(again, kThen));
  EXPECT_EQ(again.count().results, 0u);
}

TEST_P(Conformance, OldBatchesGoAndTheirResultsAnswer) {
  const WallTime cutoff = SomeBatch(1, {}).accepted_at + std::chrono::hours(1);
  const auto end = [&](std::uint64_t batch, std::uint8_t tree, WallTime at) {
    const JobsAccepted accepted = SomeBatch(batch, {PlainSpec(4)});
    Outcome outcome = SomeOutcome({.batch = batch}, PlainSpec(4), SomeMeasurement(tree));
    outcome.finished_at = at;
    MustApply({accepted, JobFinished{.outcome = outcome}});
    return accepted;
  };
  const JobsAccepted old = end(1, 1, cutoff - std::chrono::minutes(1));
  end(2, 2, cutoff + std::chrono::minutes(1));
  MustApply({SomeBatch(3, {PlainSpec(4)})});    // unfinished
  end(4, 4, cutoff - std::chrono::minutes(1));  // the newest
  const PruningRule rule{.finished_before = cutoff, .asked_by = "a test"};
  const PruningCount would = reader_->CountPruning(rule).value();
  Pruning pass(rule);
  while (!pass.is_over()) ASSERT_TRUE(store_->Prune(pass, cutoff));
  for (const PruningCount& count : {would, pass.count()}) {
    EXPECT_EQ(count.batches, 1u);
    EXPECT_EQ(count.requests, 1u);
    EXPECT_EQ(count.jobs, 1u);
    EXPECT_EQ(count.outcomes, 1u);
    EXPECT_EQ(count.damaged, 0u);
  }
  Restart();
  EXPECT_FALSE(reader_->FindBatch({1}).value());
  EXPECT_TRUE(reader_->WasPruned({1}).value());
  EXPECT_FALSE(reader_->ReadJob({{1}, 0}).value());
  EXPECT_FALSE(reader_->FindRequest(old.client, old.request_id).value());
  EXPECT_TRUE(Find(SomeMeasurement(1))) << "its result answers";
  for (const std::uint64_t batch : {2u, 3u, 4u}) {
    EXPECT_TRUE(reader_->FindBatch({batch}).value()) << batch;
    EXPECT_FALSE(reader_->WasPruned({batch}).value()) << batch;
  }
  Pruning again(rule);
  while (!again.is_over()) ASSERT_TRUE(store_->Prune(again, cutoff));
  EXPECT_EQ(again.count().batches, 0u);
}

INSTANTIATE_TEST_SUITE_P(Engines, Conformance, ::testing::ValuesIn(kEngines), NameOf);

}  // namespace
}  // namespace loopfleet::storage
