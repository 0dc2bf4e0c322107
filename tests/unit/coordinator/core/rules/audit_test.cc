// Measurements that are made again by other workers, and what follows when they disagree.

#include "coordinator/core/rules/audit.h"

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

Opinion Says(double ns) { return {.low_ns = ns * 0.99, .high_ns = ns * 1.01}; }

TEST(Audit, IntervalsMayBeATenthApart) {
  EXPECT_TRUE(Agree(Says(100), Says(100)));
  EXPECT_TRUE(Agree(Says(100), Says(111)));
  EXPECT_TRUE(Agree(Says(111), Says(100)));
  EXPECT_FALSE(Agree(Says(100), Says(114)));
  EXPECT_FALSE(Agree(Says(114), Says(100)));
}

TEST(Audit, TheOddOneDisagreesWithTwoThatAgree) {
  EXPECT_EQ(OddOne({Says(100), Says(70), Says(101)}), (Odd{.which = 1, .is_quicker = true}));
  EXPECT_EQ(OddOne({Says(70), Says(100), Says(101)}), (Odd{.which = 0, .is_quicker = true}));
  EXPECT_EQ(OddOne({Says(100), Says(101), Says(140)}), (Odd{.which = 2, .is_quicker = false}));
  EXPECT_EQ(OddOne({Says(100), Says(101), Says(102)}), std::nullopt);
  EXPECT_EQ(OddOne({Says(100), Says(130), Says(170)}), std::nullopt);
  EXPECT_EQ(OddOne({Says(100), Says(111), Says(122)}),
            std::nullopt);  // the middle agrees with both
}

TEST(Audit, TheShareIsWhatWasAskedForAndTheChoiceIsFixed) {
  int chosen = 0;
  for (std::uint32_t index = 0; index < 100'000; ++index) {
    const JobId job = MakeJobId(7, index);
    EXPECT_EQ(IsAudited(job, 200), IsAudited(job, 200));
    if (IsAudited(job, 200)) ++chosen;
  }
  EXPECT_NEAR(chosen, 2000, 200);
  EXPECT_FALSE(IsAudited(MakeJobId(7, 1), 0));
  EXPECT_TRUE(IsAudited(MakeJobId(7, 1), 10'000));
}

// One that claims to be 0.7 times as slow, and anything up to twice that, agreed with everybody.
TEST(Audit, AWideIntervalIsNoExcuse) {
  const Measurement honest{.elapsed_ns = 100, .elapsed_low_ns = 99, .elapsed_high_ns = 101};
  const Measurement wide{.elapsed_ns = 70, .elapsed_low_ns = 60, .elapsed_high_ns = 130};
  EXPECT_FALSE(Agree(OpinionOf({}, "", {}, wide), OpinionOf({}, "", {}, honest)));
  EXPECT_TRUE(Agree(OpinionOf({}, "", {}, honest), OpinionOf({}, "", {}, honest)));
}

using Came = AuditRecord::Came;

AuditRecord After(std::initializer_list<Came> audits) {
  AuditRecord record;
  record.Begin(Instant(seconds(100)));
  Instant now(seconds(100));
  for (const Came came : audits) record.Note(came, now += seconds(1));
  return record;
}

TEST(Audit, ThreeQuickOddResultsOfEightAreProofAndTwoAreNone) {
  constexpr Came kOk = Came::kConfirmed;
  constexpr Came kQuick = Came::kQuickOdd;
  EXPECT_FALSE(After({kQuick, kQuick}).IsConvicted());
  EXPECT_TRUE(After({kQuick, kQuick, kQuick}).IsConvicted());
  EXPECT_TRUE(After({kQuick, kOk, kOk, kQuick, kOk, kOk, kOk, kQuick}).IsConvicted());
  EXPECT_FALSE(After({kQuick, kOk, kOk, kQuick, kOk, kOk, kOk, kOk, kQuick}).IsConvicted());
  // What nobody could settle says nothing.
  EXPECT_FALSE(After({kQuick, kQuick, Came::kDisputed, Came::kDisputed}).IsConvicted());
  EXPECT_EQ(After({kQuick, kOk, Came::kDisputed}).audits(), 3U);
  EXPECT_EQ(After({kQuick, kOk, Came::kDisputed}).disputes(), 2U);
}

// What disturbs makes kernels slower.
TEST(Audit, SlowOddResultsProveLess) {
  constexpr Came kOk = Came::kConfirmed;
  constexpr Came kSlow = Came::kSlowOdd;
  EXPECT_FALSE(After({kSlow, kSlow, kSlow, kSlow, kOk}).IsConvicted());
  EXPECT_TRUE(After({kSlow, kSlow, kSlow, kSlow, kOk, kSlow}).IsConvicted());
  EXPECT_TRUE(After({kSlow, kSlow, Came::kQuickOdd, kSlow, Came::kQuickOdd}).IsConvicted());
}

// A liar that is confirmed now and then lied before that, too.
TEST(Audit, AWorkerIsBelievedUntilTheAuditBeforeItsFirstStrike) {
  constexpr Came kOk = Came::kConfirmed;
  constexpr Came kQuick = Came::kQuickOdd;
  EXPECT_EQ(After({kQuick, kQuick, kQuick}).BelievedUntil(), Instant(seconds(100)));
  EXPECT_EQ(After({kOk, kOk, kQuick, kOk, kQuick, kQuick}).BelievedUntil(), Instant(seconds(102)));
  EXPECT_EQ(After({kOk, kQuick, kOk, kOk, kOk, kOk, kOk, kQuick, kQuick}).BelievedUntil(),
            Instant(seconds(101)));
}

Limits EveryJob() {
  Limits limits;
  limits.audits_per_10000 = 10'000;
  return limits;
}

struct Fleet : Harness {
  Fleet() : Harness(EveryJob()) {
    ClientHello("c", 1);
    WorkerHello("w", 50);
  }
  // A job that "w" measures as `ns`, and its audit is under way.
  void MeasuredBy(const PeerId& peer, std::uint8_t tree, double ns) {
    Submit("c", {{.tree = tree}});
    Write();
    for (const wire::Lease& lease : TakeLeases(peer)) Answer(peer, lease, ns);
    Write();
    Settle();
  }
  void Answer(const PeerId& peer, const wire::Lease& lease, double ns) {
    Evaluation evaluation;
    evaluation.verdict = Measurement{.elapsed_ns = ns,
                                     .elapsed_low_ns = ns * 0.99,
                                     .elapsed_high_ns = ns * 1.01,
                                     .elapsed_min_ns = ns,
                                     .elapsed_mean_ns = ns,
                                     .spread = 0.01,
                                     .samples_ns = {ns},
                                     .sample_flags = {0}};
    const Job* job = core->state().jobs.Find(lease.job);
    evaluation.tree_key = job->tree;
    evaluation.flop_count = job->flop_count;
    const auto& worker = core->state().workers.all().begin()->second;
    evaluation.conditions = Conditions{.hardware = worker.facts.hardware,
                                       .compiler = worker.facts.compiler,
                                       .policy = worker.facts.policy,
                                       .isolation = "none"};
    ReportEvaluation(peer, lease, std::move(evaluation));
  }
  void Settle() {  // what ticks and the disk have to do
    Pass(milliseconds(100));
    Write();
    Pass(milliseconds(100));
    Write();
  }
  const Worker& Known(std::uint8_t name) const { return *core->state().workers.Find(Named(name)); }
};

TEST(Core, AMeasurementIsMadeAgainByAnotherWorkerOfTheClass) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.WorkerHello("g", 52, {.device = DeviceKind::kCuda});
  h.Submit("c", {{.tree = 1}});
  h.Write();
  h.Answer("w", h.TakeLeases("w").at(0), 100);
  h.Write();
  h.Settle();
  const auto audit = h.TakeLeases("x");
  ASSERT_EQ(audit.size(), 1U);
  EXPECT_EQ(audit[0].spec.freshness, Freshness::kMeasureAnew);
  EXPECT_EQ(audit[0].job.batch, BatchId{2});
  h.Answer("x", audit[0], 104);
  h.Write();
  EXPECT_EQ(h.Known(50).audits.audits(), 1U);
  EXPECT_EQ(h.Known(50).audits.disputes(), 0U);
  EXPECT_TRUE(h.disk.doubted.empty());
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(2, 0)).evaluation.ok());  // a row of its own
  h.Settle();
  EXPECT_TRUE(h.TakeLeases("w").empty());  // an audit is not audited
  EXPECT_EQ(h.core->state().batches.size(), 0U);
}

TEST(Core, WithoutAnotherWorkerOfTheClassNothingIsAudited) {
  Fleet h;
  h.MeasuredBy("w", 1, 100);
  EXPECT_EQ(h.core->state().audits.size(), 0U);
  EXPECT_EQ(h.disk.batches.size(), 1U);
}

// An audit of a job that "w" measured waits, "x" is busy, and the client has `row` jobs queued.
struct WaitingInLoad : Fleet {
  explicit WaitingInLoad(std::size_t row) {
    WorkerHello("x", 51);
    std::vector<JobWish> jobs;
    for (std::size_t i = 0; i < row + 3; ++i) {
      jobs.push_back({.tree = static_cast<std::uint8_t>(1 + i)});
    }
    Submit("c", jobs);
    Write();
    Answer("w", TakeLeases("w").at(0), 100);  // w has the third job now
    Write();
    Settle();
    EXPECT_EQ(core->state().audits.waiting.size(), 1U);
  }
  // How many jobs x is given before it is given the audit.
  std::size_t JobsBeforeTheAudit() {
    for (std::size_t jobs = 0;; ++jobs) {
      const auto leases = TakeLeases("x");
      if (leases.empty()) return 1'000;
      if (leases.at(0).job.batch == BatchId{2}) return jobs;
      ReportFailure("x", leases.at(0), FailureCode::kRunTimeout);  // no more audits
      Write();
    }
  }
};

TEST(Core, WhileJobsAreQueuedOneOfSoManyGrantsIsAnAudits) {
  WaitingInLoad h(40);
  EXPECT_EQ(h.JobsBeforeTheAudit(), 23U);  // w was given two of the 25
  EXPECT_FALSE(h.core->state().ready.size() == 0);
}

TEST(Core, AWorkerDoesNotAuditItself) {
  WaitingInLoad h(60);
  for (int i = 0; i < 50; ++i) {
    const auto leases = h.TakeLeases("w");
    ASSERT_EQ(leases.size(), 1U);
    ASSERT_EQ(leases[0].job.batch, BatchId{1});
    h.ReportFailure("w", leases[0], FailureCode::kRunTimeout);
    h.Write();
  }
}

// The one job that somebody waits for goes before an audit, for as long again.
TEST(Core, AnAuditLetsThoseWithFewJobsGoFirst) {
  WaitingInLoad h(3);
  for (int i = 0; i < 60; ++i) {
    const auto leases = h.TakeLeases("x");
    ASSERT_EQ(leases.size(), 1U);
    if (leases[0].job.batch == BatchId{2}) {
      EXPECT_EQ(i, 48);  // w was given two of the 50
      return;
    }
    h.Submit("c", {{.tree = static_cast<std::uint8_t>(100 + i)}});
    h.Write();
    h.ReportFailure("x", leases[0], FailureCode::kRunTimeout);
    h.Write();
  }
  FAIL() << "the audit had no turn";
}

// The queue holds what only others may run.
TEST(Core, AWorkerThatNothingIsQueuedForAudits) {
  Fleet h;
  h.Submit("c", {{.tree = 1}});
  h.Write();
  h.WorkerHello("x", 51);
  h.Answer("w", h.TakeLeases("w").at(0), 100);
  h.Submit("c", {{.tree = 2, .threads = 4}, {.tree = 3, .threads = 4}});
  h.Write();
  h.Settle();
  const auto leases = h.TakeLeases("x");
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].job.batch, BatchId{3});
}

TEST(Core, AnAuditHasNoDeadline) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.Submit("c", {{.tree = 1, .deadline_s = 1}, {.tree = 2}});
  h.Write();
  h.Answer("w", h.TakeLeases("w").at(0), 100);
  h.Write();
  h.Pass(seconds(2));  // x is busy
  h.Write();
  h.Heartbeat("x");
  EXPECT_EQ(h.core->state().audits.waiting.size(), 1U);
}

// Found by the simulation (seed 9600, with a grace of 750 ms): it was granted a second time.
TEST(Core, AnAuditThatItsWorkerComesBackWithWaitsForNobodyElse) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.MeasuredBy("w", 1, 100);
  const auto audit = h.TakeLeases("x");
  ASSERT_EQ(audit.size(), 1U);
  h.WorkerHello("y", 52, {.credit = 1});
  h.Submit("c", {{.tree = 2}, {.tree = 3}, {.tree = 4}, {.tree = 5}});  // nobody idles
  h.Write();
  const wire::Lease kept = h.TakeLeases("y").at(0);
  for (int i = 0; i < 50; ++i) {  // the others are lost
    h.Pass(milliseconds(100));
    h.Heartbeat("y", {kept.lease});
  }
  EXPECT_EQ(h.core->state().audits.waiting.size(), 1U);
  h.WorkerHello("x2", 51, {.held = {{.lease = audit[0].lease, .job = audit[0].job}}});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("x2"));
  EXPECT_TRUE(h.core->state().audits.waiting.empty());
  h.core->CheckInvariants();
}

TEST(Core, ADisagreementIsPutToAThird) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.WorkerHello("y", 52);
  h.MeasuredBy("w", 1, 70);
  h.Answer("x", h.TakeLeases("x").at(0), 100);
  h.Write();
  h.Settle();
  const auto third = h.TakeLeases("y");
  ASSERT_EQ(third.size(), 1U);
  h.Answer("y", third[0], 101);
  h.Write();
  ASSERT_EQ(h.disk.doubted.size(), 1U);
  EXPECT_EQ(h.disk.doubted[0].job, MakeJobId(1, 0));
  EXPECT_EQ(h.Known(50).audits.disputes(), 1U);
  EXPECT_EQ(h.Known(51).audits.disputes(), 0U);
  EXPECT_EQ(h.Known(50).state, wire::WorkerState::kReady);  // one is no proof
}

TEST(Core, WithTwoWorkersBothAreInDoubtAndNobodyIsPutAway) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.MeasuredBy("w", 1, 70);
  h.Answer("x", h.TakeLeases("x").at(0), 100);
  h.Write();
  h.Settle();
  ASSERT_EQ(h.disk.doubted.size(), 2U);
  EXPECT_NE(h.disk.doubted[0].reason.find("nobody could settle"), std::string::npos);
  EXPECT_EQ(h.Known(50).audits.disputes(), 1U);
  EXPECT_EQ(h.Known(51).audits.disputes(), 1U);
  EXPECT_EQ(h.core->Workers(wire::WorkerState::kReady), 2U);
}

TEST(Core, AWorkerThatIsRefutedThreeTimesIsPutInQuarantineUntilItIsResumed) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.WorkerHello("y", 52);
  for (std::uint8_t tree = 1; tree <= 3; ++tree) {
    EXPECT_EQ(h.Known(50).state, wire::WorkerState::kReady);
    h.Submit("c", {{.tree = tree}});
    h.Write();
    // Whoever gets it: "w" lies, the others do not. Opinions until it is settled.
    for (int round = 0; round < 4; ++round) {
      for (const auto& [peer, ns] : {std::pair{"w", 70.0}, {"x", 100.0}, {"y", 101.0}}) {
        for (const wire::Lease& lease : h.TakeLeases(peer)) h.Answer(peer, lease, ns);
      }
      h.Write();
      h.Settle();
    }
  }
  // Not every job came to "w" first; go on until it was heard three times.
  for (std::uint8_t tree = 4; tree < 60 && h.Known(50).refuted_by.empty(); ++tree) {
    h.Submit("c", {{.tree = tree}});
    h.Write();
    for (int round = 0; round < 4; ++round) {
      for (const auto& [peer, ns] : {std::pair{"w", 70.0}, {"x", 100.0}, {"y", 101.0}}) {
        for (const wire::Lease& lease : h.TakeLeases(peer)) h.Answer(peer, lease, ns);
      }
      h.Write();
      h.Settle();
    }
  }
  EXPECT_EQ(h.Known(50).state, wire::WorkerState::kQuarantined);
  EXPECT_EQ(h.Known(51).state, wire::WorkerState::kReady);
  EXPECT_EQ(h.Known(52).state, wire::WorkerState::kReady);
  ASSERT_EQ(h.disk.suspected.size(), 1U);
  EXPECT_EQ(h.disk.suspected[0].worker, "worker 50");
  const auto list = h.Ask("c", wire::ListWorkers{});
  const wire::WorkerInfo shown = h.TakeReply<wire::WorkerList>("c", list)->workers.at(0);
  EXPECT_EQ(shown.quarantine_cause, QuarantineCause::kAudits);
  const std::set<std::string> others(shown.refuted_by.begin(), shown.refuted_by.end());
  EXPECT_EQ(others, (std::set<std::string>{"worker 51", "worker 52"}));
  EXPECT_EQ(shown.quarantine.find("3 of its last 3 audits were refuted, the last by worker 5"), 0U)
      << shown.quarantine;
  h.Heartbeat("w");
  EXPECT_EQ(h.Known(50).state, wire::WorkerState::kQuarantined);
  h.Ask("c", wire::SetDrain{.target = "worker 50", .wish = wire::DrainWish::kResume});
  h.Write();
  EXPECT_EQ(h.Known(50).state, wire::WorkerState::kReady);
}

TEST(Core, AnAuditThatNobodyIsThereForEnds) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  h.Answer("w", h.TakeLeases("w").at(0), 100);
  h.Write();
  h.Settle();
  EXPECT_EQ(h.core->state().audits.waiting.size(), 1U);  // x is busy
  h.Say("x", wire::Goodbye{});
  h.Pass(milliseconds(100));
  h.Write();
  EXPECT_EQ(h.core->state().audits.size(), 0U);
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(2, 0))), FailureCode::kExpired);
}

// An audit waits for x, which is busy with the second job.
struct WaitingAudit : Fleet {
  WaitingAudit() {
    WorkerHello("x", 51);
    Submit("c", {{.tree = 1}, {.tree = 2}});
    Write();
    busy = TakeLeases("x").at(0);
    Answer("w", TakeLeases("w").at(0), 100);
    Write();
    Settle();
    EXPECT_TRUE(core->state().audits.waiting.contains(audit));
  }
  JobId audit = MakeJobId(2, 0);
  wire::Lease busy;
};

TEST(Core, WhyAnAuditWaitsIsExplained) {
  WaitingAudit h;
  const auto told = h.TakeReply<wire::JobExplanation>("c", h.Ask("c", wire::ExplainJob{h.audit}));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason,
            "queued: it repeats a measurement of worker 50 as an audit, and waits for a turn at "
            "another worker of that hardware");
}

// However many events there are, and ticks: that w cannot be asked was seen once.
TEST(Core, AnAuditThatWaitsIsNotLookedAtUntilSomethingChanges) {
  WaitingAudit h;
  const auto& audits = h.core->state().audits;
  const std::uint64_t before = audits.looks;
  EXPECT_GT(before, 0U);
  for (int i = 0; i < 100; ++i) {
    h.Pass(milliseconds(100));
    h.Heartbeat("w");
    h.Heartbeat("x", {h.busy.lease});
  }
  EXPECT_EQ(audits.looks, before);
  h.WorkerHello("y", 52);
  const auto leases = h.TakeLeases("y");
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].job, h.audit);
  EXPECT_EQ(audits.looks, before + 1);
}

// The same while jobs wait that are for somebody else.
TEST(Core, NorIsOneThatWaitsBesideJobsForOthers) {
  WaitingAudit h;
  h.Submit("c", {{.tree = 3, .labels = {"big"}}});
  h.Write();
  const auto& audits = h.core->state().audits;
  const std::uint64_t before = audits.looks;
  for (int i = 0; i < 100; ++i) {
    h.Pass(milliseconds(100));
    h.Heartbeat("w");
    h.Heartbeat("x", {h.busy.lease});
  }
  EXPECT_EQ(audits.looks, before);
  h.WorkerHello("y", 52);
  EXPECT_EQ(h.TakeLeases("y").at(0).job, h.audit);
}

TEST(Core, AnAuditThatThereIsNoRoomForIsDropped) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.Submit("c", {{.tree = 1}});
  h.Write();
  h.Answer("w", h.TakeLeases("w").at(0), 100);
  h.Write();
  h.Pass(milliseconds(100));
  h.RefuseWrites(FailureCode::kStorageFull);
  EXPECT_EQ(h.core->state().audits.size(), 0U);
  EXPECT_EQ(h.core->state().batches.size(), 0U);
}

TEST(Core, ARestartedCoordinatorFinishesAuditsAsOrdinaryJobs) {
  Fleet h;
  h.WorkerHello("x", 51);
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  h.Answer("w", h.TakeLeases("w").at(0), 100);
  h.Write();
  h.Settle();
  h.Restart();
  h.WorkerHello("z", 60, {.credit = 9});
  h.Pass(seconds(2));
  EXPECT_EQ(h.TakeLeases("z").size(), 2U);
}

}  // namespace
}  // namespace loopfleet::coordinator
