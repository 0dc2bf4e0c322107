// Which failures are retried, and on which worker.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

using enum FailureCode;

TEST(RetryRules, WhatOnlyTheJobIsToBlameForIsFinal) {
  for (const FailureCode code : {kInvalidBenchmark, kInvalidAction, kLimitFlops, kLimitUnroll,
                                 kRunTimeout, kCut, kExpired, kCancelled, kUnsupported}) {
    EXPECT_EQ(InfoOf(code).policy.retry.verdicts, 1u) << InfoOf(code).name;
  }
}

// Worker "w" has the job; "x" is idle.
struct TwoWorkers : OneLease {
  TwoWorkers() { WorkerHello("x", 51); }
};

// A failure with the conditions that a worker states.
void ReportVerdict(Harness& h, const PeerId& peer, const wire::Lease& lease, FailureCode code) {
  Evaluation evaluation = h.GoodEvaluation(lease);
  evaluation.verdict = Failure{.code = code, .message = "test"};
  h.ReportEvaluation(peer, lease, std::move(evaluation));
}

TEST(Core, ABusyHostIsAskedThreeTimesInAll) {
  OneLease h;
  for (int turn = 1; turn < 3; ++turn) {
    h.ReportFailure("w", h.lease, kUnstableTiming);
    EXPECT_TRUE(h.TakeCommand<wire::ReportsStored>("w"));  // forgotten at once
    h.lease = h.TakeLeases("w").at(0);
    EXPECT_EQ(h.lease.attempt, turn + 1U);
  }
  h.ReportFailure("w", h.lease, kUnstableTiming);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), kUnstableTiming);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 3U);
}

// Otherwise it would be granted to that worker without end.
TEST(Core, AJobThatAWorkerIsTooOldToReadGoesToAnotherOneOrEnds) {
  TwoWorkers h;
  h.observations.clear();
  h.ReportFailure("w", h.lease, kVersionMismatch);
  ASSERT_TRUE(std::ranges::any_of(h.observations, [&](const Observation& one) {
    const auto* unreadable = std::get_if<LeaseWasUnreadable>(&one);
    return unreadable != nullptr && unreadable->job == h.lease.job;
  }));
  EXPECT_TRUE(h.TakeLeases("w").empty());
  const wire::Lease second = h.TakeLeases("x").at(0);
  EXPECT_EQ(second.job, h.lease.job);
  h.ReportFailure("x", second, kVersionMismatch);
  for (const wire::Lease& last : h.TakeLeases("w")) h.ReportFailure("w", last, kVersionMismatch);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), kVersionMismatch);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 3U);
}

TEST(Core, AFigureAfterABusyMomentIsTheOutcome) {
  OneLease h;
  h.ReportFailure("w", h.lease, kUnstableTiming);
  h.Report("w", h.TakeLeases("w").at(0));
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(1, 0)).evaluation.ok());
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 2U);
}

TEST(Core, AnOverdueJobIsNotTriedAgain) {
  Harness h({.max_expiries_per_tick = 0});  // as if others were overdue before it
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1, .deadline_s = 1}});
  h.Write();
  h.WorkerHello("w", 50);
  const wire::Lease lease = h.TakeLeases("w").at(0);
  h.Submit("c", {{.tree = 2}});
  h.Write();
  h.WorkerHello("x", 51);
  const wire::Lease other = h.TakeLeases("x").at(0);
  h.ReportFailure("w", lease, kUnstableTiming);  // waits for "x"
  h.now.instant += milliseconds(1'500);
  h.Report("x", other);
  EXPECT_TRUE(h.TakeLeases("x").empty());
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(lease.job)), kExpired);
}

TEST(Core, AnotherWorkerIsAskedBeforeTheSameOne) {
  TwoWorkers h;
  h.ReportFailure("w", h.lease, kUnstableTiming);
  EXPECT_TRUE(h.TakeLeases("w").empty());
  EXPECT_EQ(h.TakeLeases("x").at(0).job, h.lease.job);
}

TEST(Core, AnotherWorkerThatIsBusyIsWaitedForAndNotForEver) {
  TwoWorkers h;
  h.Submit("c", {{.tree = 8}});
  h.Write();
  const wire::Lease busy = h.TakeLeases("x").at(0);
  h.ReportFailure("w", h.lease, kUnstableTiming);
  for (int beat = 0; beat < 19; ++beat) {
    h.Pass(milliseconds(100));
    h.Heartbeat("x", {busy.lease});
    h.Heartbeat("w");
  }
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Pass(milliseconds(200));
  EXPECT_EQ(h.TakeLeases("w").at(0).job, h.lease.job);
}

// "w" failed a job that "x", which is busy, can run, too, and that fifty idle workers cannot.
struct RetryBesideIdleWorkers : Harness {
  RetryBesideIdleWorkers() {
    ClientHello("c", 1);
    WorkerHello("x", 200, {.labels = {"both"}});
    busy = LeaseFor("x", 1);
    for (std::uint8_t i = 0; i < 50; ++i) {
      WorkerHello("idle " + std::to_string(i), 100 + i, {.labels = {"other"}});
    }
    WorkerHello("w", 50, {.labels = {"both"}});
    failed = LeaseFor("w", 2);
    ReportFailure("w", failed, kUnstableTiming);
  }
  wire::Lease LeaseFor(const PeerId& worker, std::uint8_t tree) {
    Submit("c", {{.tree = tree, .labels = {"both"}}});
    Write();
    return TakeLeases(worker).at(0);
  }
  wire::Lease busy;
  wire::Lease failed;
};

TEST(Core, WorkersAreConsideredForARetryWhenTheyBecomeFree) {
  RetryBesideIdleWorkers h;
  const std::uint64_t before = h.core->state().retries.looks();
  for (int i = 0; i < 20; ++i) h.Heartbeat("w");
  EXPECT_EQ(h.core->state().retries.looks(), before);
  h.Report("x", h.busy);
  EXPECT_EQ(h.core->state().retries.looks(), before + 1);
  EXPECT_EQ(h.TakeLeases("x").at(0).job, h.failed.job);
}

TEST(Core, AWorkerThatJoinsIsConsideredForARetry) {
  RetryBesideIdleWorkers h;
  h.WorkerHello("y", 51, {.labels = {"both"}});
  EXPECT_EQ(h.TakeLeases("y").at(0).job, h.failed.job);
}

TEST(Core, ARetryStopsWaitingWhenItsAlternativeIsGone) {
  RetryBesideIdleWorkers h;
  h.Say("x", wire::Goodbye{});
  h.Heartbeat("w");
  EXPECT_EQ(h.TakeLeases("w").at(0).job, h.failed.job);
}

TEST(Core, AJobThatIsTriedAgainGoesBeforeWhatIsQueued) {
  TwoWorkers h;
  h.Submit("c", {{.tree = 8}, {.tree = 9}, {.tree = 10}});
  h.Write();
  const wire::Lease busy = h.TakeLeases("x").at(0);
  h.ReportFailure("w", h.lease, kUnstableTiming);
  EXPECT_EQ(h.TakeLeases("w").at(0).job, MakeJobId(2, 1));  // waits for x
  h.Report("x", busy);
  EXPECT_EQ(h.TakeLeases("x").at(0).job, h.lease.job);
}

TEST(Core, AWrongOutputAloneIsFinal) {
  OneLease h;
  h.ReportFailure("w", h.lease, kWrongOutput);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), kWrongOutput);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 1U);
}

TEST(Core, AWrongOutputIsAskedOfAnotherWorkerOnce) {
  for (const FailureCode code : {kWrongOutput, kRunCrash, kCompileError, kSandboxViolation}) {
    TwoWorkers h;
    h.ReportFailure("w", h.lease, code);
    h.WorkerHello("y", 52);
    const wire::Lease second = h.TakeLeases("x").at(0);
    EXPECT_EQ(second.attempt, 2U);
    h.ReportFailure("x", second, code);
    h.Write();
    EXPECT_TRUE(h.TakeLeases("y").empty());
    EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), code);
    EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 2U);
  }
}

TEST(Core, WhoAgreedWithTheVerdictIsStoredWithIt) {
  TwoWorkers h;
  ReportVerdict(h, "w", h.lease, kRunCrash);
  ReportVerdict(h, "x", h.TakeLeases("x").at(0), kRunCrash);
  h.Write();
  const std::vector<storage::Witness> first{{.worker = "worker 50", .host = ""}};
  EXPECT_EQ(h.disk.agreeing.at(h.lease.job), first);
}

TEST(Core, ADifferentVerdictDoesNotAgree) {
  TwoWorkers h;
  ReportVerdict(h, "w", h.lease, kRunCrash);
  ReportVerdict(h, "x", h.TakeLeases("x").at(0), kRunTimeout);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(h.lease.job)), kRunTimeout);
  EXPECT_TRUE(h.disk.agreeing.at(h.lease.job).empty());
}

TEST(Core, AVerdictGivenInQuarantineDoesNotAgree) {
  OneLease h;
  h.Say("w",
        wire::Heartbeat{
            .held = {h.lease.lease}, .canary_ratio = 1.2, .canary = wire::CanaryState::kDrifting});
  h.WorkerHello("x", 51);
  ReportVerdict(h, "w", h.lease, kRunCrash);
  ReportVerdict(h, "x", h.TakeLeases("x").at(0), kRunCrash);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(h.lease.job)), kRunCrash);
  EXPECT_TRUE(h.disk.agreeing.at(h.lease.job).empty());
}

TEST(Core, AFirstVerdictGivenInQuarantineStaysInDoubt) {
  OneLease h;
  h.Say("w",
        wire::Heartbeat{
            .held = {h.lease.lease}, .canary_ratio = 1.2, .canary = wire::CanaryState::kDrifting});
  h.WorkerHello("x", 51);
  h.ReportFailure("w", h.lease, kRunCrash);
  const wire::Lease second = h.TakeLeases("x").at(0);
  h.Heartbeat("x", {second.lease});
  h.Say("x", wire::Goodbye{});  // lost with the job
  h.Pass(seconds(5));
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(h.lease.job)), kRunCrash);
  EXPECT_TRUE(h.disk.in_doubt.contains(h.lease.job));
}

// "w" and "x" are on one host, "y" is on another and busy.
struct TwoHosts : Harness {
  TwoHosts() {
    ClientHello("c", 1);
    WorkerHello("y", 52, {.host = "other"});
    Submit("c", {{.tree = 1}});
    Write();
    busy = TakeLeases("y").at(0);
    WorkerHello("w", 50, {.host = "one"});
    Submit("c", {{.tree = 2}});
    Write();
    failed = TakeLeases("w").at(0);
    WorkerHello("x", 51, {.host = "one"});
    ReportFailure("w", failed, kRunCrash);
  }
  void PassBeats(int beats) {
    for (int beat = 0; beat < beats; ++beat) {
      Pass(milliseconds(100));
      Heartbeat("w");
      Heartbeat("x");
      Heartbeat("y", {busy.lease});
    }
  }
  wire::Lease busy;
  wire::Lease failed;
};

TEST(Core, ASecondVerdictIsRatherAnotherHosts) {
  TwoHosts h;
  h.PassBeats(10);
  EXPECT_TRUE(h.TakeLeases("x").empty());
  h.Report("y", h.busy);
  EXPECT_EQ(h.TakeLeases("y").at(0).job, h.failed.job);
}

TEST(Core, ASecondVerdictIsTheSameHostsBeforeItIsNobodys) {
  TwoHosts h;
  h.PassBeats(25);
  EXPECT_EQ(h.TakeLeases("x").at(0).job, h.failed.job);
}

TEST(Core, ASecondVerdictIsTheSameHostsOnceTheOtherHostIsGone) {
  TwoHosts h;
  h.Say("y", wire::Goodbye{});
  EXPECT_EQ(h.TakeLeases("x").at(0).job, h.failed.job);
}

TEST(Core, WhatAnotherWorkerMeasuresIsTheOutcome) {
  TwoWorkers h;
  h.ReportFailure("w", h.lease, kWrongOutput);
  h.Report("x", h.TakeLeases("x").at(0));
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(1, 0)).evaluation.ok());
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).worker, "worker 51");
}

TEST(Core, ASecondOpinionThatComesBackUnrunIsAskedOfAnother) {
  TwoWorkers h;
  h.ReportFailure("w", h.lease, kWrongOutput);
  const wire::Lease second = h.TakeLeases("x").at(0);
  h.WorkerHello("y", 52);
  h.Say("x", wire::Returned{.leases = {second.lease}});
  h.Pass(milliseconds(100));
  std::vector<wire::Lease> third = h.TakeLeases("x");  // x did not fail it and may get it again
  if (third.empty()) third = h.TakeLeases("y");
  ASSERT_EQ(third.size(), 1U);
  EXPECT_EQ(third[0].attempt, 2U) << "what came back unrun does not count";
}

TEST(RetryTable, EveryOneHasItsTurn) {
  RetryTable retries;
  for (std::uint32_t index = 0; index < 10; ++index) retries.Add({.job = MakeJobId(1, index)});
  EXPECT_EQ(retries.Next(20).size(), 10U);
  EXPECT_EQ(retries.Next(20).front().second.job, MakeJobId(1, 0));
  std::set<std::uint32_t> seen;
  for (int turn = 0; turn < 4; ++turn) {
    const auto some = retries.Next(3);
    EXPECT_EQ(some.size(), 3U);
    for (const auto& [order, entry] : some) seen.insert(entry.job.index);
  }
  EXPECT_EQ(seen.size(), 10U);
}

TEST(Core, WithoutASecondOpinionTheFirstStands) {
  TwoWorkers h;
  h.ReportFailure("w", h.lease, kWrongOutput);
  EXPECT_EQ(h.TakeLeases("x").size(), 1U);
  for (int beat = 0; beat < 50; ++beat) {  // x is silent
    h.Pass(milliseconds(100));
    h.Heartbeat("w");
  }
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), kWrongOutput);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).worker, "worker 50");
  EXPECT_TRUE(h.TakeLeases("w").empty());
}

TEST(Core, ASecondOpinionIsNotWaitedForForEver) {
  TwoWorkers h;
  h.Submit("c", {{.tree = 8}});
  h.Write();
  const wire::Lease busy = h.TakeLeases("x").at(0);
  h.ReportFailure("w", h.lease, kWrongOutput);
  for (int beat = 0; beat < 25; ++beat) {
    h.Pass(milliseconds(100));
    h.Heartbeat("x", {busy.lease});
    h.Heartbeat("w");
  }
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), kWrongOutput);
}

TEST(Core, ACancelledJobIsNotTriedAgain) {
  TwoWorkers h;
  h.Submit("c", {{.tree = 8}});
  h.Write();
  h.TakeLeases("x");
  h.ReportFailure("w", h.lease, kUnstableTiming);  // waits for x, which is busy
  h.Ask("c", wire::CancelBatch{BatchId{1}});
  h.Write();
  h.Pass(seconds(1));
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), kCancelled);
}

TEST(Core, EqualJobsShareWhatASecondOpinionSays) {
  TwoWorkers h;
  h.Submit("c", {{.tree = 7}});  // follows
  h.Write();
  h.ReportFailure("w", h.lease, kRunCrash);
  h.ReportFailure("x", h.TakeLeases("x").at(0), kRunCrash);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(2, 0))), kRunCrash);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(2, 0)).source, OutcomeSource::kCoalesced);
}

}  // namespace
}  // namespace loopfleet::coordinator
