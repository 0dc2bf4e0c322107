#include "coordinator/core/core.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

// ---- the normal path ----

TEST(Core, AJobGoesFromSubmissionToOutcome) {
  OneLease h;
  const auto fetch = h.Ask("c", wire::FetchOutcomes{.batch = BatchId{1}, .wait_ms = 60'000});
  h.Report("w", h.lease);
  h.Write();
  EXPECT_TRUE(h.TakePage("c", fetch));
  EXPECT_EQ(h.TakeCommand<wire::ReportsStored>("w")->leases, std::vector{h.lease.lease});
  const Outcome& outcome = h.OutcomeOf(MakeJobId(1, 0));
  EXPECT_TRUE(outcome.evaluation.ok());
  EXPECT_EQ(outcome.source, OutcomeSource::kMeasured);
  EXPECT_EQ(outcome.attempts, 1u);
  EXPECT_EQ(outcome.worker, "worker 50");
}

TEST(Core, NothingIsSaidOrGrantedBeforeTheAcceptanceIsOnDisk) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  const auto number = h.Submit("c", {{.tree = 7}, {.tree = 8, .invalid = Failure{}}});
  EXPECT_TRUE(h.SaidNothing());
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Write();
  h.MustAccept("c", number);
  EXPECT_EQ(h.TakeLeases("w").size(), 1u);
}

TEST(Core, NothingIsSaidBeforeTheOutcomeIsOnDisk) {
  OneLease h;
  h.Ask("c", wire::FetchOutcomes{.batch = BatchId{1}, .wait_ms = 60'000});
  h.Report("w", h.lease);
  EXPECT_TRUE(h.SaidNothing());
  EXPECT_FALSE(h.TakeCommand<wire::ReportsStored>("w"));
}

TEST(Core, FinishedBatchesLeaveNothingBehind) {
  OneLease h;
  h.Report("w", h.lease);
  h.Write();
  const State& state = h.core->state();
  EXPECT_EQ(state.batches.size() + state.jobs.size() + state.leases.size() +
                state.single_flight.size() + state.long_polls.size(),
            0u);
  EXPECT_FALSE(h.core->HasWritesUnderWay());
}

TEST(Core, ABatchWithoutJobsIsOverOnceItIsOnDisk) {
  Harness h;
  h.ClientHello("c", 1);
  const auto number = h.Submit("c", {});
  h.Write();
  EXPECT_EQ(h.MustAccept("c", number).job_count, 0u);
  EXPECT_EQ(h.core->state().batches.size(), 0u);
}

TEST(Core, JobsAreSharedOutBeforeAnyoneGetsASecond) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w1", 50, {.credit = 4});
  h.WorkerHello("w2", 51, {.credit = 4});
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}, {.tree = 4}});
  h.Write();
  EXPECT_EQ(h.TakeLeases("w1").size(), 2u);
  EXPECT_EQ(h.TakeLeases("w2").size(), 2u);
}

TEST(Core, CreditIsToppedUpAndNeverExceeded) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50, {.credit = 2});
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}});
  h.Write();
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 2u);
  h.Report("w", leases[0]);
  EXPECT_EQ(h.TakeLeases("w").size(),
            1u);  // at once: the slot does not wait for the disk
}

TEST(Core, JobsOnlyGoToWorkersOfTheirDevice) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("cpu", 50, {.credit = 9});
  h.WorkerHello("gpu", 51, {.credit = 1, .device = DeviceKind::kCuda});
  h.Submit("c", {{.tree = 1, .placement = Placement::kCuda}, {.tree = 2}});
  h.Write();
  EXPECT_EQ(h.TakeLeases("gpu").at(0).job, MakeJobId(1, 0));
  EXPECT_EQ(h.TakeLeases("cpu").at(0).job, MakeJobId(1, 1));
}

TEST(Core, AdmissionFailuresAndStoredAnswersAreOutcomesWithoutAWorker) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1, .invalid = Failure{.code = FailureCode::kInvalidAction}},
                 {.tree = 2, .stored = true}});
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kInvalidAction);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 0u);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 1)).source, OutcomeSource::kStored);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 1)).worker, "earlier");
  EXPECT_EQ(h.core->state().batches.size(), 0u);
}

// ---- submitting ----

TEST(Core, ASubmissionNeedsAHello) {
  Harness h;
  const auto number = h.Submit("stranger", {{.tree = 1}});
  EXPECT_EQ(h.TakeReply<wire::Refused>("stranger", number)->failure.code,
            FailureCode::kUnauthenticated);
  EXPECT_TRUE(h.unwritten.empty());
}

TEST(Core, ConnectionsAreForgottenLongestSilentFirst) {
  Harness h({.max_clients = 2});
  for (const PeerId peer : {"a", "b"}) {
    h.Pass(milliseconds(100));
    h.ClientHello(peer, 1);
  }
  h.Pass(milliseconds(100));
  h.Ask("a", wire::ListWorkers{});
  h.ClientHello("c", 1);
  EXPECT_TRUE(h.core->ClientOf("a"));
  EXPECT_FALSE(h.core->ClientOf("b"));
  EXPECT_TRUE(h.core->ClientOf("c"));
}

TEST(Core, AnotherMajorVersionIsRefused) {
  Harness h;
  const auto number = h.Ask("c", wire::ClientHello{.version = {.major = 9}, .client = Named(1)});
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", number)->failure.code, FailureCode::kVersionMismatch);
  h.WorkerHello("w", 50, {.version = {.major = 9}});
  EXPECT_EQ(h.TakeCommand<wire::Refused>("w")->failure.code, FailureCode::kVersionMismatch);
  EXPECT_EQ(h.core->state().workers.size(), 0u);
}

TEST(Core, ARepeatBeforeTheDiskAnswersIsAnsweredOnceAndLatest) {
  Harness h;
  h.ClientHello("old", 1);
  h.Submit("old", {{.tree = 1}}, {.request = 5});
  h.ClientHello("new", 1);  // the same client over another connection
  const auto repeat = h.Submit("new", {{.tree = 1}}, {.request = 5});
  EXPECT_TRUE(h.SaidNothing());
  h.Write();
  EXPECT_EQ(h.MustAccept("new", repeat).batch, BatchId{1});
  EXPECT_EQ(h.disk.jobs.size(), 1u);
}

TEST(Core, ARepeatAfterwardsAndAfterARestartGetsTheSameAnswer) {
  Harness h;
  h.ClientHello("c", 1);
  const auto first = h.Submit("c", {{.tree = 1}}, {.request = 5});
  h.Write();
  const auto answer = h.MustAccept("c", first);
  EXPECT_EQ(h.MustAccept("c", h.Submit("c", {{.tree = 1}}, {.request = 5})), answer);
  h.Restart();
  h.ClientHello("c", 1);
  EXPECT_EQ(h.MustAccept("c", h.Submit("c", {{.tree = 1}}, {.request = 5})), answer);
  EXPECT_EQ(h.disk.jobs.size(), 1u);
}

TEST(Core, TheSameIdWithOtherContentIsAConflict) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}}, {.request = 5});
  const auto early = h.Submit("c", {{.tree = 2}}, {.request = 5, .content = "other"});
  h.Write();
  const auto late = h.Submit("c", {{.tree = 2}}, {.request = 5, .content = "other"});
  for (const auto number : {early, late}) {
    EXPECT_EQ(h.TakeReply<wire::Refused>("c", number)->failure.code,
              FailureCode::kDuplicateIdConflict);
  }
}

TEST(Core, TheSameIdOfAnotherClientIsAnotherRequest) {
  Harness h;
  h.ClientHello("c", 1);
  h.ClientHello("d", 2);
  const auto first = h.Submit("c", {{.tree = 1}}, {.request = 5});
  const auto second = h.Submit("d", {{.tree = 1}}, {.request = 5});
  h.Write();
  EXPECT_NE(h.MustAccept("c", first).batch, h.MustAccept("d", second).batch);
}

TEST(Core, MessagesOfOneBatchGoToDiskOneAfterAnother) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}}, {.request = 1, .end = wire::BatchEnd::kMoreFollows});
  h.Write();
  const BatchId batch{1};
  const auto more = wire::BatchEnd::kMoreFollows;
  const auto b = h.Submit("c", {{.tree = 2}}, {.request = 2, .append_to = batch, .end = more});
  const auto c = h.Submit("c", {{.tree = 3}}, {.request = 3, .append_to = batch});
  EXPECT_EQ(h.unwritten.size(), 1u);
  h.Write();
  EXPECT_EQ(h.MustAccept("c", b).first_index, 1u);
  EXPECT_EQ(h.MustAccept("c", c).first_index, 2u);
  EXPECT_TRUE(h.disk.batches.at(batch).closed);
}

TEST(Core, OnlyAnOpenBatchOfOnesOwnTakesMore) {
  Harness h;
  h.ClientHello("c", 1);
  h.ClientHello("d", 2);
  h.Submit("c", {{.tree = 1}}, {.request = 1, .end = wire::BatchEnd::kMoreFollows});
  h.Submit("c", {{.tree = 1}}, {.request = 2});
  h.Write();
  const auto others = h.Submit("d", {{.tree = 2}}, {.request = 3, .append_to = BatchId{1}});
  const auto closed = h.Submit("c", {{.tree = 2}}, {.request = 4, .append_to = BatchId{2}});
  const auto none = h.Submit("c", {{.tree = 2}}, {.request = 5, .append_to = BatchId{9}});
  EXPECT_EQ(h.TakeReply<wire::Refused>("d", others)->failure.code, FailureCode::kNotFound);
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", closed)->failure.code, FailureCode::kNotFound);
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", none)->failure.code, FailureCode::kNotFound);
}

TEST(Core, AFullQueueIsBusyAndSaysWhenToTryAgain) {
  Harness h({.max_unfinished_jobs = 2});
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  const auto number = h.Submit("c", {{.tree = 3}});
  const auto refused = h.TakeReply<wire::Refused>("c", number);
  EXPECT_EQ(refused->failure.code, FailureCode::kBusy);
  EXPECT_GT(refused->retry_after_ms, 0u);
}

TEST(Core, TheMemoryOfAllClientsJobsIsBounded) {
  Harness h({.max_unfinished_bytes = 3 * MemoryBytesOf(JobSpec{}) - 1});
  h.ClientHello("a", 1);
  h.ClientHello("b", 2);
  h.Submit("a", {{.tree = 1}, {.tree = 2}});
  h.Write();
  const auto number = h.Submit("b", {{.tree = 3}});
  const auto refused = h.TakeReply<wire::Refused>("b", number);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->failure.code, FailureCode::kBusy);
  EXPECT_GT(refused->retry_after_ms, 0U);
  EXPECT_NE(refused->failure.message.find("bytes"), std::string::npos);
}

TEST(Core, TooManyBatchesAreBusyAndTooLongOnesOverQuota) {
  Harness h({.max_unfinished_batches = 1, .max_jobs_per_batch = 2});
  h.ClientHello("c", 1);
  const auto long_one = h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}});
  h.Submit("c", {{.tree = 1}});
  const auto second = h.Submit("c", {{.tree = 1}});
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", long_one)->failure.code, FailureCode::kQuotaExceeded);
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", second)->failure.code, FailureCode::kBusy);
}

TEST(Core, ADrainingCoordinatorAcceptsAndGrantsNothing) {
  OneLease h;
  h.Give(DrainRequested{});
  const auto number = h.Submit("c", {{.tree = 1}});
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", number)->failure.code, FailureCode::kShuttingDown);
  h.Report("w", h.lease);
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(1, 0)).evaluation.ok());  // a running job may still succeed
}

// ---- a full disk ----

TEST(Core, WithoutRoomASubmissionIsRefusedAndLeavesNoTrace) {
  Harness h;
  h.ClientHello("c", 1);
  const auto number = h.Submit("c", {{.tree = 1}}, {.request = 5});
  h.RefuseWrites(FailureCode::kStorageFull);
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", number)->failure.code, FailureCode::kStorageFull);
  h.core->CheckInvariants();
  EXPECT_EQ(h.core->state().single_flight.size(), 0u);
  const auto again = h.Submit("c", {{.tree = 1}}, {.request = 5});
  h.Write();
  h.MustAccept("c", again);
}

TEST(Core, ARefusedAppendLeavesNoGap) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}}, {.request = 1, .end = wire::BatchEnd::kMoreFollows});
  h.Write();
  const auto more = wire::BatchEnd::kMoreFollows;
  h.Submit("c", {{.tree = 2}, {.tree = 3}}, {.request = 2, .append_to = BatchId{1}, .end = more});
  const auto next = h.Submit("c", {{.tree = 4}}, {.request = 3, .append_to = BatchId{1}});
  h.RefuseWrites(FailureCode::kStorageFull);
  h.Write();
  EXPECT_EQ(h.MustAccept("c", next).first_index, 1u);
}

TEST(Core, OutcomesWaitForRoomAndNothingMoreIsGrantedMeanwhile) {
  Harness h({.max_undurable_outcomes = 1});
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  h.WorkerHello("w", 50);
  h.Report("w", h.TakeLeases("w").at(0));
  h.RefuseWrites(FailureCode::kStorageFull);
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Write();
  EXPECT_EQ(h.TakeLeases("w").size(), 1u);
  EXPECT_TRUE(h.TakeCommand<wire::ReportsStored>("w"));
}

TEST(Core, OutcomesThatWaitForTheDiskAreBoundedByTheirMemoryToo) {
  constexpr std::size_t kReportBytes = 400'000;
  Harness h({.max_undurable_outcome_bytes = std::uint64_t{4} << 20});
  h.ClientHello("c", 1);
  std::vector<JobSetup> jobs;
  for (std::uint8_t tree = 1; tree <= 40; ++tree) jobs.push_back({.tree = tree});
  h.Submit("c", jobs);
  h.Write();
  h.WorkerHello("w", 50);
  std::size_t reports = 0;
  for (auto leases = h.TakeLeases("w"); !leases.empty(); leases = h.TakeLeases("w")) {
    Evaluation large;
    large.verdict =
        Failure{.code = FailureCode::kRunTimeout, .message = std::string(kReportBytes, 'x')};
    h.ReportEvaluation("w", leases[0], std::move(large));
    ++reports;
  }
  EXPECT_EQ(reports, 6U);  // each is there twice: equal jobs get it before it is on disk
  const auto number = h.Ask("c", wire::ExplainJob{.job = MakeJobId(1, 39)});
  const std::string why = h.TakeReply<wire::JobExplanation>("c", number)->reason;
  EXPECT_NE(why.find("6 outcomes wait to be written"), std::string::npos) << why;
  h.Write();
  EXPECT_EQ(h.TakeLeases("w").size(), 1U);
  EXPECT_EQ(h.core->state().commits.undurable_outcome_bytes(), 0U);
}

// ---- equal jobs ----

TEST(Core, EqualJobsInFlightAreMeasuredOnce) {
  Harness h;
  h.ClientHello("c", 1);
  h.ClientHello("d", 2);
  h.Submit("c", {{.tree = 7}, {.tree = 7}});
  h.Submit("d", {{.tree = 7}});
  h.Write();
  h.WorkerHello("w", 50, {.credit = 9});
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 1u);
  h.Report("w", leases[0]);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).source, OutcomeSource::kMeasured);
  for (const JobId id : {MakeJobId(1, 1), MakeJobId(2, 0)}) {
    EXPECT_EQ(h.OutcomeOf(id).source, OutcomeSource::kCoalesced);
    EXPECT_EQ(h.OutcomeOf(id).evaluation.measurement(),
              h.OutcomeOf(MakeJobId(1, 0)).evaluation.measurement());
  }
  EXPECT_EQ(h.core->state().single_flight.size(), 0u);
}

TEST(Core, AnEqualJobThatArrivesAfterTheReportSharesIt) {
  OneLease h;
  h.Report("w", h.lease);
  h.Submit("c", {{.tree = 7}});  // the report is not on disk: the store has nothing
  h.Write();
  EXPECT_TRUE(h.TakeLeases("w").empty());
  EXPECT_EQ(h.OutcomeOf(MakeJobId(2, 0)).source, OutcomeSource::kCoalesced);
}

TEST(Core, AnEqualJobThatArrivesBeforeTheAnswerIsOnDiskSharesIt) {
  OneLease h;
  h.Submit("c", {{.tree = 7}});  // the store has nothing yet
  h.Report("w", h.lease);        // written after the submission
  h.Submit("c", {{.tree = 7}});  // the report is not on disk: the store has nothing
  h.Write();
  EXPECT_TRUE(h.TakeLeases("w").empty());
  EXPECT_EQ(h.OutcomeOf(MakeJobId(2, 0)).source, OutcomeSource::kCoalesced);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(3, 0)).source, OutcomeSource::kCoalesced);
  EXPECT_EQ(h.core->state().single_flight.size(), 0u);
}

TEST(Core, FreshJobsAndOtherPlacementsAreMeasuredThemselves) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 7},
                 {.tree = 7, .freshness = Freshness::kMeasureAgain},
                 {.tree = 7, .placement = Placement::kAny}});
  h.Write();
  h.WorkerHello("w", 50, {.credit = 9});
  EXPECT_EQ(h.TakeLeases("w").size(), 3u);
}

TEST(Core, FollowersShareAFailureOfTheTree) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 7}, {.tree = 7}});
  h.Write();
  h.WorkerHello("w", 50);
  h.ReportFailure("w", h.TakeLeases("w").at(0), FailureCode::kRunCrash);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 1))), FailureCode::kRunCrash);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 1)).source, OutcomeSource::kCoalesced);
}

TEST(Core, WhenTheLeaderIsCancelledAFollowerTakesItsTurn) {
  Harness h;
  h.ClientHello("c", 1);
  h.ClientHello("d", 2);
  h.WorkerHello("w", 50);
  h.Submit("c", {{.tree = 7}});
  h.Submit("d", {{.tree = 7}});
  h.Write();
  h.TakeLeases("w");
  h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  EXPECT_TRUE(h.TakeCommand<wire::Revoke>("w"));
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].job, MakeJobId(2, 0));
  h.Report("w", leases[0]);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kCancelled);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(2, 0)).source, OutcomeSource::kMeasured);
}

// ---- cancelling, asking, waiting ----

TEST(Core, CancellingEndsWhatIsUnfinishedAndRevokesWhatRuns) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}, {.tree = 3}});
  h.Write();
  h.WorkerHello("w", 50);
  h.Report("w", h.TakeLeases("w").at(0));
  const auto running = h.TakeLeases("w").at(0);
  h.replies.clear();
  h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  EXPECT_TRUE(h.SaidNothing());
  h.Write();
  EXPECT_EQ(h.from_storage.size(), 1u);
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases, std::vector{running.lease});
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(1, 0)).evaluation.ok());
  for (std::uint32_t i = 1; i < 4; ++i) {
    EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, i))), FailureCode::kCancelled);
  }
  h.Report("w", running);
  EXPECT_TRUE(h.TakeCommand<wire::ReportsStored>("w"));
  EXPECT_EQ(h.core->state().batches.size(), 0u);
}

// Found by the simulation: such batches filled the table, and every other client was refused with
// BUSY permanently.
TEST(Core, ABatchThatItsClientLeftOpenIsClosed) {
  Harness h({.max_unfinished_batches = 1, .open_batch_idle = seconds(80)});
  h.ClientHello("c", 1);
  h.ClientHello("d", 2);
  h.Submit("c", {}, {.request = 1, .end = wire::BatchEnd::kMoreFollows});
  h.Write();
  h.Pass(seconds(60));
  h.Ask("c", wire::FetchOutcomes{.batch = BatchId{1}});  // its client is still there
  h.Ask("d", wire::FetchOutcomes{.batch = BatchId{1}});
  h.Pass(seconds(60));
  h.Write();
  EXPECT_FALSE(h.disk.batches.at(BatchId{1}).closed);
  h.Pass(seconds(60));
  h.Write();
  EXPECT_TRUE(h.disk.batches.at(BatchId{1}).closed);
  const auto late = h.Submit("c", {{.tree = 1}}, {.request = 2, .append_to = BatchId{1}});
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", late)->failure.code, FailureCode::kNotFound);
  const auto next = h.Submit("d", {{.tree = 1}});
  h.Write();
  EXPECT_TRUE(h.TakeReply<wire::Accepted>("d", next));
}

// Found by the simulation (seed 29 of its first version): storage answered the second request,
// before it knew of the cancellation, and said that the batch was open.
TEST(Core, CancellingAgainIsAnsweredOnceTheFirstIsOnDisk) {
  Harness h;
  h.ClientHello("c", 1);
  h.ClientHello("d", 2);
  h.Submit("c", {{.tree = 1}});
  h.Write();
  h.replies.clear();
  const auto first = h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  const auto again = h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  const auto other = h.Ask("d", wire::CancelBatch{.batch = BatchId{1}});
  EXPECT_TRUE(h.SaidNothing());
  h.Write();
  std::map<PeerId, std::uint64_t> answered;
  for (const AnswerFromStorage& answer : h.from_storage) answered[answer.peer] = answer.number;
  EXPECT_LT(first, again);
  EXPECT_EQ(answered, (std::map<PeerId, std::uint64_t>{{"c", again}, {"d", other}}));
  EXPECT_EQ(h.from_storage.size(), 2u);
}

TEST(Core, CancellingReachesMessagesOnTheirWay) {
  Harness h;
  h.ClientHello("c", 1);
  const auto more = wire::BatchEnd::kMoreFollows;
  h.Submit("c", {{.tree = 1}}, {.request = 1, .end = more});
  h.Write();
  h.Submit("c", {{.tree = 2}}, {.request = 2, .append_to = BatchId{1}, .end = more});
  const auto held = h.Submit("c", {{.tree = 3}}, {.request = 3, .append_to = BatchId{1}});
  h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 1))), FailureCode::kCancelled);
  EXPECT_EQ(h.TakeReply<wire::Refused>("c", held)->failure.code, FailureCode::kNotFound);
  EXPECT_EQ(h.core->state().batches.size(), 0u);
}

TEST(Core, AFetchWaitsForTheNextOutcomeOnDisk) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  h.WorkerHello("w", 50);
  h.Report("w", h.TakeLeases("w").at(0));
  h.Write();
  const wire::FetchOutcomes after0{.batch = BatchId{1}, .wait_ms = 60'000};
  const wire::FetchOutcomes after1{.batch = BatchId{1}, .after_sequence = 1, .wait_ms = 60'000};
  EXPECT_TRUE(h.TakePage("c", h.Ask("c", after0)));
  const auto second = h.Ask("c", after1);
  EXPECT_FALSE(h.TakePage("c", second));
  h.Report("w", h.TakeLeases("w").at(0));
  h.Write();
  EXPECT_TRUE(h.TakePage("c", second));
  EXPECT_TRUE(h.TakePage("c", h.Ask("c", after1)));  // over: storage has it
}

TEST(Core, AFetchEndsWhenItsTimeIsOver) {
  OneLease h;
  const auto fetch = h.Ask("c", wire::FetchOutcomes{.batch = BatchId{1}, .wait_ms = 500});
  h.Pass(milliseconds(400));
  EXPECT_FALSE(h.TakePage("c", fetch));
  h.Pass(milliseconds(100));
  EXPECT_TRUE(h.TakePage("c", fetch));
  EXPECT_EQ(h.core->state().long_polls.size(), 0u);
}

TEST(Core, WaitersAreBounded) {
  Harness h({.max_waiters = 3, .max_waiters_per_client = 2});
  h.ClientHello("c", 1);
  h.ClientHello("c2", 1);
  h.ClientHello("d", 2);
  h.Submit("c", {{.tree = 1}});
  h.Write();
  const wire::FetchOutcomes fetch{.batch = BatchId{1}, .wait_ms = 60'000};
  h.Ask("c", fetch);
  h.Ask("c", fetch);
  const auto own = h.TakeReply<wire::Refused>("c2", h.Ask("c2", fetch));
  ASSERT_TRUE(own) << "over another connection it is the same client";
  EXPECT_EQ(own->failure.code, FailureCode::kQuotaExceeded);
  h.Ask("d", fetch);
  const auto all = h.TakeReply<wire::Refused>("d", h.Ask("d", fetch));
  EXPECT_EQ(all->failure.code, FailureCode::kBusy);
  h.Give(ClientUnreachable{"c"});
  EXPECT_EQ(h.core->state().long_polls.size(), 1u);
}

TEST(Core, AJobIsShownWithWhatOnlyTheCoreKnows) {
  OneLease h;
  h.Ask("c", wire::ShowJob{.job = MakeJobId(1, 0)});
  ASSERT_EQ(h.shown_jobs.size(), 1u);
  EXPECT_EQ(h.shown_jobs[0].live->state, wire::JobState::kLeased);
  EXPECT_EQ(h.shown_jobs[0].live->worker, "worker 50");
  EXPECT_EQ(h.shown_jobs[0].live->attempts, 1u);
}

TEST(Core, WorkersAreListed) {
  OneLease h;
  h.Pass(milliseconds(700));
  const auto list = h.TakeReply<wire::WorkerList>("c", h.Ask("c", wire::ListWorkers{}));
  ASSERT_EQ(list->workers.size(), 1u);
  EXPECT_EQ(list->workers[0].leased_jobs, 1u);
  EXPECT_EQ(list->workers[0].since_heartbeat_ms, 700u);
}

TEST(Core, WhatIsNotKnownIsUnsupported) {
  Harness h;
  const auto refused = h.TakeReply<wire::Refused>("c", h.Ask("c", wire::UnknownMember{99}));
  EXPECT_EQ(refused->failure.code, FailureCode::kUnsupported);
  h.Say("w", wire::UnknownMember{99});
  EXPECT_EQ(h.TakeCommand<wire::Refused>("w")->failure.code, FailureCode::kUnsupported);
}

}  // namespace
}  // namespace loopfleet::coordinator
