// Workers with drifting canaries, the clock of a hardware class, and the threads that kernels may
// use.

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

wire::Heartbeat Canaries(wire::CanaryState state, seconds steady_since,
                         std::vector<LeaseId> held = {}) {
  return {.held = std::move(held),
          .canary_ratio = state == wire::CanaryState::kDrifting ? 1.07 : 1.0,
          .canary = state,
          .steady_since_ms = static_cast<std::uint64_t>(milliseconds(steady_since).count()),
          .drifting = state == wire::CanaryState::kDrifting ? std::optional(Canary::kMemory)
                                                            : std::nullopt};
}

// The worker reports the drift in each heartbeat for `time`.
void Drift(Harness& h, const PeerId& peer, seconds time, const std::vector<LeaseId>& held = {}) {
  for (seconds passed{0}; passed < time; passed += seconds(1)) {
    h.Say(peer, Canaries(wire::CanaryState::kDrifting, seconds(20), held));
    h.Pass(seconds(1));
  }
}

wire::WorkerInfo ShownWorker(Harness& h) {
  const auto number = h.Ask("c", wire::ListWorkers{});
  return h.TakeReply<wire::WorkerList>("c", number)->workers.at(0);
}

TEST(Core, AWorkerThatDriftsGetsNothingThatAReadyOneCouldRun) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.WorkerHello("x", 51);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  const wire::Lease busy = h.TakeLeases("x").at(0);
  EXPECT_TRUE(h.TakeLeases("w").empty());
  EXPECT_EQ(ShownWorker(h).state, wire::WorkerState::kQuarantined);
  EXPECT_NEAR(ShownWorker(h).canary_ratio, 1.07, 1e-9);
  EXPECT_EQ(h.Workers(wire::WorkerState::kQuarantined), 1U);
  for (int second = 0; second < 5; ++second) {
    h.Heartbeat("x", {busy.lease});
    Drift(h, "w", seconds(1));
  }
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Say("w", Canaries(wire::CanaryState::kSteady, seconds(20)));
  EXPECT_EQ(h.TakeLeases("w").size(), 1U);
  EXPECT_EQ(ShownWorker(h).state, wire::WorkerState::kReady);
}

// Limited because storage searches the worker's results each time a drift begins.
TEST(Core, AWorkerThatFlipsIsBelievedOnceInAWhile) {
  OneLease h;
  h.Report("w", h.lease);
  for (int i = 0; i < 100; ++i) {  // 10 s
    h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
    h.Say("w", Canaries(wire::CanaryState::kSteady, seconds(20)));
    h.Pass(milliseconds(100));
  }
  h.Write();
  EXPECT_EQ(h.disk.suspected.size(), 2U);
  EXPECT_EQ(h.Workers(wire::WorkerState::kQuarantined), 1U);
}

// Older results are of an earlier worker of the same name. The minute before the hello is for a
// coordinator that was restarted: it does not know the first hello.
TEST(Core, ADoubtReachesBackToTheHelloOfTheWorkerAndToItsLastQuarantine) {
  constexpr auto kVeryLong = std::chrono::days(1000);
  OneLease h;
  h.Report("w", h.lease);
  h.Pass(seconds(1));
  h.WorkerHello("w2", 50);  // a new connection of the same worker
  h.Pass(seconds(1));
  const WallTime first_drift = h.now.wall;
  Drift(h, "w2", seconds(6));
  h.Say("w2", Canaries(wire::CanaryState::kSteady, seconds(0)));
  h.Say("w2", Canaries(wire::CanaryState::kDrifting, kVeryLong));
  h.Write();
  ASSERT_EQ(h.disk.suspected.size(), 2U);
  EXPECT_EQ(h.disk.suspected[0].since, first_drift - seconds(20));
  EXPECT_EQ(h.disk.suspected[1].since, first_drift);
  h.WorkerHello("x", 51);
  const WallTime second_hello = h.now.wall;
  h.Say("x", Canaries(wire::CanaryState::kDrifting, kVeryLong));
  h.Write();
  ASSERT_EQ(h.disk.suspected.size(), 3U);
  EXPECT_EQ(h.disk.suspected[2].since, second_hello - std::chrono::minutes(1));
}

// A coordinator that was started a while ago, so that it knows the first hellos of its workers.
struct LongStarted : Harness {
  LongStarted() {
    ClientHello("c", 1);
    Pass(std::chrono::minutes(1));
  }
  void Measure(const PeerId& peer) {
    Submit("c", {{.tree = ++last_tree}});
    Write();
    Report(peer, TakeLeases(peer).at(0));
    Write();
  }
  // A worker comes, measures a job, drifts and leaves.
  void ComeAndDrift(const PeerId& peer, std::uint8_t worker) {
    WorkerHello(peer, worker);
    Measure(peer);
    Say(peer, Canaries(wire::CanaryState::kDrifting, seconds(20)));
    Say(peer, wire::Goodbye{});
    Write();
  }
  void StaySteady(const std::vector<PeerId>& peers, Nanos time) {
    for (Nanos passed{0}; passed < time; passed += seconds(1)) {
      Pass(seconds(1));
      for (const PeerId& peer : peers) Say(peer, Canaries(wire::CanaryState::kSteady, seconds(0)));
    }
  }
  std::uint8_t last_tree = 0;
};

TEST(CoreTrust, AWorkerThatReportedNothingIsNotSuspected) {
  LongStarted h;
  h.WorkerHello("w", 50);
  h.StaySteady({"w"}, seconds(20));
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Write();
  EXPECT_EQ(h.Workers(wire::WorkerState::kQuarantined), 1U);
  EXPECT_TRUE(h.disk.suspected.empty());
}

TEST(CoreTrust, AWorkerThatWasForgottenAndCameBackIsSuspected) {
  LongStarted h;
  h.WorkerHello("w", 50);
  h.Measure("w");
  h.Say("w", wire::Goodbye{});
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Write();
  EXPECT_EQ(h.disk.suspected.size(), 1U);
}

TEST(CoreTrust, WorkersOfAKeyThatReportedNothingAreNotSuspectedTogether) {
  LongStarted h;
  const std::vector<PeerId> peers = {"u", "v", "w"};
  for (const PeerId& peer : peers) {
    h.keys[peer] = "key";
    h.WorkerHello(peer, static_cast<std::uint8_t>(peer[0]));
  }
  h.StaySteady(peers, h.limits.min_drift);
  for (const PeerId& peer : peers) {
    h.Say(peer, Canaries(wire::CanaryState::kDrifting, seconds(20)));
  }
  h.Write();
  EXPECT_EQ(h.disk.suspected.size(), 1U);
}

TEST(CoreTrust, NewIncarnationsOfAKeyDoNotSuspectAgainAtOnce) {
  LongStarted h;
  h.keys = {{"w", "key"}, {"x", "another"}};
  for (std::uint8_t worker = 50; worker < 60; ++worker) h.ComeAndDrift("w", worker);
  EXPECT_EQ(h.disk.suspected.size(), 1U);
  h.ComeAndDrift("x", 60);
  EXPECT_EQ(h.disk.suspected.size(), 2U);
  h.Pass(h.limits.min_drift);
  h.ComeAndDrift("w", 61);
  EXPECT_EQ(h.disk.suspected.size(), 3U);
}

// What happens to a host happens to all its workers at once.
TEST(CoreTrust, AllWorkersOfAKeyThatHaveBeenThereAreSuspected) {
  LongStarted h;
  const std::vector<PeerId> peers = {"u", "v", "w"};
  for (const PeerId& peer : peers) {
    h.keys[peer] = "key";
    h.WorkerHello(peer, static_cast<std::uint8_t>(peer[0]));
  }
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}});
  h.Write();
  for (const PeerId& peer : peers) h.Report(peer, h.TakeLeases(peer).at(0));
  h.StaySteady(peers, h.limits.min_drift);
  for (const PeerId& peer : peers) {
    h.Say(peer, Canaries(wire::CanaryState::kDrifting, seconds(20)));
  }
  h.Write();
  EXPECT_EQ(h.disk.suspected.size(), 3U);
}

TEST(Core, ANewConnectionDoesNotEndAQuarantine) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.WorkerHello("w2", 50);
  EXPECT_EQ(ShownWorker(h).state, wire::WorkerState::kQuarantined);
}

TEST(Core, WhatADriftingWorkerHasGoesToOthersUncounted) {
  OneLease h;
  h.WorkerHello("x", 51);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20), {h.lease.lease}));
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases, std::vector{h.lease.lease});
  const auto again = h.TakeLeases("x");
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].attempt, 1U);
  // A report in flight is ignored.
  h.Report("w", h.lease);
  h.Write();
  EXPECT_TRUE(h.disk.outcomes.empty());
}

TEST(Core, ResultsInDoubtAreFlaggedAndMeasuredAnew) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  h.Report("w", h.TakeLeases("w").at(0));  // before the drift
  EXPECT_EQ(ShownWorker(h).recent_figures, 1U);
  EXPECT_EQ(ShownWorker(h).recent_imprecise, 1U);  // the grade of the harness is C
  h.Pass(seconds(2));
  h.Say("w", Canaries(wire::CanaryState::kSteady, seconds(1)));
  h.Pass(seconds(2));
  const wire::Lease doubted = h.TakeLeases("w").at(0);
  h.Report("w", doubted);
  h.Write();
  h.Pass(seconds(1));
  h.WorkerHello("x", 51);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(3)));
  h.Write();
  ASSERT_EQ(h.disk.suspected.size(), 1U);
  EXPECT_EQ(h.disk.suspected[0].worker, "worker 50");
  EXPECT_EQ(h.disk.suspected[0].since, h.now.wall - seconds(3));
  // Only once, however often the worker reports the drift.
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(4)));
  h.Write();
  EXPECT_EQ(h.disk.suspected.size(), 1U);

  // The second job is measured again by another worker, in a batch without a client.
  const auto leases = h.TakeLeases("x");
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].job.batch, BatchId{2});
  EXPECT_EQ(leases[0].spec.freshness, Freshness::kMeasureAgain);
  EXPECT_EQ(leases[0].spec.source, doubted.spec.source);
  h.ReportEvaluation("x", leases[0], h.GoodEvaluation(doubted));
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(2, 0)).evaluation.ok());
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(1, 1)).evaluation.ok());  // unchanged
  EXPECT_EQ(h.core->state().batches.size(), 0U);
}

// The worker itself would measure no better than before.
TEST(Core, ResultsInDoubtThatNoReadyWorkerCouldMeasureAreOnlyFlagged) {
  OneLease h;
  h.Report("w", h.lease);
  h.Write();
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(3)));
  h.Write();
  EXPECT_EQ(h.disk.suspected.size(), 1U);
  EXPECT_TRUE(h.TakeLeases("w").empty());
  EXPECT_EQ(h.core->state().batches.size(), 0U);
}

// They are kept after their clients were told, so no client's quota bounds them.
TEST(Core, MeasurementsInDoubtTakeBoundedMemory) {
  const std::uint64_t kMost = 3 * MemoryBytesOf(JobSpec{}) - 1;  // room for two
  Limits limits;
  limits.max_remeasured_bytes = kMost;
  Harness h(limits);
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  const Worker& worker = h.core->state().workers.all().begin()->second;
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}, {.tree = 4}});
  h.Write();
  for (int job = 0; job < 4; ++job) {
    h.Report("w", h.TakeLeases("w").at(0));
    h.Write();
    EXPECT_LE(worker.in_doubt_bytes, kMost);
  }
  EXPECT_EQ(worker.in_doubt.size(), 2U);
  h.Pass(seconds(2));
  h.Say("w", Canaries(wire::CanaryState::kSteady, seconds(1)));
  EXPECT_TRUE(worker.in_doubt.empty());
  EXPECT_EQ(worker.in_doubt_bytes, 0U);
}

std::string WhyItWaits(Harness& h, JobId job) {
  const auto number = h.Ask("c", wire::ExplainJob{.job = job});
  return h.TakeReply<wire::JobExplanation>("c", number)->reason;
}

std::vector<WorkerChanged> ChangesTo(const Harness& h, WorkerChange change) {
  std::vector<WorkerChanged> found;
  for (const Observation& observation : h.observations) {
    const auto* changed = std::get_if<WorkerChanged>(&observation);
    if (changed != nullptr && changed->change == change) found.push_back(*changed);
  }
  return found;
}

TEST(Core, TheReasonOfAQuarantineTravels) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  const auto changes = ChangesTo(h, WorkerChange::kQuarantined);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].quarantine.cause, QuarantineCause::kMemoryCanary);
  EXPECT_NEAR(changes[0].quarantine.canary_ratio, 1.07, 1e-9);
  h.Pass(seconds(2));
  const wire::WorkerInfo shown = ShownWorker(h);
  EXPECT_EQ(shown.quarantine_cause, QuarantineCause::kMemoryCanary);
  EXPECT_EQ(shown.quarantine, "its canaries of memory take 1.0700 of their time at start");
  EXPECT_EQ(shown.quarantined_ms, 2000U);
}

Evaluation OfGradeA(Evaluation evaluation) {
  auto& figure = std::get<Measurement>(evaluation.verdict);
  figure.elapsed_ns = figure.elapsed_mean_ns = 1000;
  figure.elapsed_low_ns = figure.elapsed_min_ns = 995;
  figure.elapsed_high_ns = 1005;
  figure.spread = 0.005;
  figure.samples_ns = {995, 1000, 1005};
  figure.grade = Grade::kA;
  return evaluation;
}

// A lone worker with noisy canaries does not starve its jobs.
TEST(Core, AWorkerInQuarantineGetsWhatNoReadyOneCouldRun) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 1U);  // its credit
  EXPECT_EQ(ShownWorker(h).state, wire::WorkerState::kQuarantined);
  EXPECT_NE(WhyItWaits(h, leases[0].job).find("of grade C at best and in doubt"),
            std::string::npos);
  const std::string why = WhyItWaits(h, MakeJobId(1, 1));
  EXPECT_NE(why.find("canaries of memory take 1.0700"), std::string::npos) << why;
  EXPECT_NE(why.find("in its turn the job is measured there"), std::string::npos) << why;

  h.ReportEvaluation("w", leases[0], OfGradeA(h.GoodEvaluation(leases[0])));
  h.Write();
  const Outcome outcome = h.OutcomeOf(leases[0].job);
  EXPECT_EQ(outcome.evaluation.measurement().grade, Grade::kC);
  EXPECT_EQ(outcome.attempts, 1U);
  ASSERT_EQ(h.disk.doubted.size(), 1U);
  EXPECT_EQ(h.disk.doubted[0].job, leases[0].job);
  EXPECT_EQ(h.TakeLeases("w").size(), 1U);  // the next one
}

TEST(Core, ADoubtImprovesNoGrade) {
  OneLease h;
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20), {h.lease.lease}));
  Evaluation worst = h.GoodEvaluation(h.lease);
  std::get<Measurement>(worst.verdict).grade = Grade::kD;
  h.ReportEvaluation("w", h.lease, worst);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(h.lease.job).evaluation.measurement().grade, Grade::kD);
  EXPECT_EQ(h.disk.doubted.size(), 1U);
}

// The quarantine alone causes no second attempt.
TEST(Core, AWorkerKeepsWhatItHasInQuarantineIfNoReadyOneCouldRunIt) {
  OneLease h;
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20), {h.lease.lease}));
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w"));
  h.Report("w", h.lease);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(h.lease.job).evaluation.measurement().grade, Grade::kC);
  ASSERT_EQ(h.disk.doubted.size(), 1U);
}

// It may be another worker's. Of grade C the store links it to no other figure, so that the doubt
// is about this one alone (Conformance.ADoubtedCopyOfGradeCIsAllThatIsInDoubt).
TEST(Core, AFigureThatAWorkerInQuarantineCopiedIsInDoubtAndOfGradeC) {
  OneLease h;
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20), {h.lease.lease}));
  Evaluation copy = OfGradeA(h.GoodEvaluation(h.lease));
  copy.code_hash = "code";
  copy.same_code = true;
  h.ReportEvaluation("w", h.lease, copy);
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(h.lease.job).evaluation.same_code);
  EXPECT_EQ(h.OutcomeOf(h.lease.job).evaluation.measurement().grade, Grade::kC);
  ASSERT_EQ(h.disk.doubted.size(), 1U);
  EXPECT_EQ(h.disk.doubted[0].job, h.lease.job);
}

// The figure was measured during the drift, however steady the worker is when it reports.
TEST(Core, WhatWasLeasedInQuarantineStaysInDoubtWhenTheWorkerIsSteadyAgain) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  const wire::Lease doubted = h.TakeLeases("w").at(0);
  Drift(h, "w", seconds(6), {doubted.lease});
  h.Say("w", Canaries(wire::CanaryState::kSteady, seconds(0), {doubted.lease}));
  h.Report("w", doubted);
  h.Report("w", h.TakeLeases("w").at(0));
  h.Write();
  ASSERT_EQ(h.disk.doubted.size(), 1U);
  EXPECT_EQ(h.disk.doubted[0].job, doubted.job);
  EXPECT_EQ(h.disk.outcomes.size(), 2U);
}

TEST(Core, WhatWasLeasedAtTheMomentOfTheReleaseIsInDoubtIfItWasLeasedBefore) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  Drift(h, "w", seconds(6), {});
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  const wire::Lease doubted = h.TakeLeases("w").at(0);
  h.Say("w", Canaries(wire::CanaryState::kSteady, seconds(0), {doubted.lease}));
  h.Report("w", doubted);
  const wire::Lease trusted = h.TakeLeases("w").at(0);
  h.Report("w", trusted);
  h.Write();
  ASSERT_EQ(h.disk.doubted.size(), 1U);
  EXPECT_EQ(h.disk.doubted[0].job, doubted.job);
  EXPECT_EQ(h.disk.outcomes.size(), 2U);
}

// The worker was lost meanwhile, and continues its job.
TEST(Core, WhatWasLeasedInQuarantineStaysInDoubtWhenTheWorkerIsBackAndSteady) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  const wire::Lease doubted = h.TakeLeases("w").at(0);
  Drift(h, "w", seconds(6), {doubted.lease});
  h.Say("w", Canaries(wire::CanaryState::kSteady, seconds(0), {doubted.lease}));
  h.Pass(seconds(5));
  ASSERT_EQ(ChangesTo(h, WorkerChange::kLost).size(), 1U);
  h.WorkerHello("w2", 50, {.held = {{.lease = doubted.lease, .job = doubted.job}}});
  h.Report("w2", doubted);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(doubted.job).evaluation.measurement().grade, Grade::kC);
  ASSERT_EQ(h.disk.doubted.size(), 1U);
  EXPECT_EQ(h.disk.doubted[0].job, doubted.job);
}

// Its neighbour would take the place of one that was lost.
TEST(Core, AWorkerLostInQuarantineIsStillInItWhenItIsBack) {
  Harness h;
  h.WorkerHello("w", 50, {.host = "one"});
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Pass(seconds(1));
  h.WorkerHello("x", 51, {.host = "one"});
  for (int second = 0; second < 5; ++second) {
    h.Pass(seconds(1));
    h.Heartbeat("x");
  }
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), 1U);
  h.WorkerHello("w2", 50, {.host = "one"});
  EXPECT_EQ(h.Workers(wire::WorkerState::kQuarantined), 1U);
}

// A restarted coordinator learns of the drift from the worker's first heartbeat.
TEST(Core, WhatWasLeasedInQuarantineIsFlaggedAfterARestart) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Submit("c", {{.tree = 1}});
  h.Write();
  const wire::Lease doubted = h.TakeLeases("w").at(0);
  h.Restart();
  h.WorkerHello("w2", 50, {.held = {{.lease = doubted.lease, .job = doubted.job}}});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w2"));
  h.Report("w2", doubted);
  h.Write();
  const WallTime finished_at = h.OutcomeOf(doubted.job).finished_at;
  h.Say("w2", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Write();
  ASSERT_FALSE(h.disk.suspected.empty());
  EXPECT_LE(h.disk.suspected.back().since, finished_at);
}

TEST(Core, AFailureOfTimeInQuarantineSaysThatItIsInDoubt) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  for (const FailureCode code : {FailureCode::kRunTimeout, FailureCode::kCompileError}) {
    const wire::Lease lease = h.TakeLeases("w").at(0);
    Evaluation failed = h.GoodEvaluation(lease);
    failed.verdict = Failure{.code = code, .message = "test"};
    h.ReportEvaluation("w", lease, failed);
    h.Write();
    const Outcome outcome = h.OutcomeOf(lease.job);
    const bool is_of_time = code == FailureCode::kRunTimeout;
    EXPECT_EQ(outcome.evaluation.failure().message.find("in doubt") != std::string::npos,
              is_of_time);
    EXPECT_TRUE(h.disk.doubted.empty());  // without a figure there is nothing to flag
  }
  EXPECT_EQ(h.disk.in_doubt.size(), 2U);
}

TEST(Core, JobsWaitForAReadyWorkerThatIsBusy) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.WorkerHello("x", 51, {.labels = {"big"}});
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3, .labels = {"big"}}});
  h.Write();
  const wire::Lease busy = h.TakeLeases("x").at(0);
  for (int second = 0; second < 70; ++second) {
    h.Heartbeat("x", {busy.lease});
    Drift(h, "w", seconds(1));
  }
  EXPECT_TRUE(h.TakeLeases("w").empty());  // x could run them, but is busy
  // x leaves: w gets the jobs that x could have run, except the one that demands x's label.
  h.Say("x", wire::Goodbye{});
  h.Pass(milliseconds(200));
  const auto left = h.TakeLeases("w");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_TRUE(left[0].spec.labels.empty());
}

// A draining worker does not count as a better candidate and gets no jobs, in quarantine or not.
TEST(Core, AWorkerThatIsDrainedIsNoCandidateAtAll) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.WorkerHello("x", 51);
  for (const PeerId peer : {"w", "x"}) {
    wire::Heartbeat drifting = Canaries(wire::CanaryState::kDrifting, seconds(20));
    if (peer == "x") drifting.drain = wire::DrainState::kDraining;
    h.Say(peer, drifting);
  }
  h.Submit("c", {{.tree = 1}, {.tree = 2}});
  h.Write();
  EXPECT_EQ(h.TakeLeases("w").size(), 1U);
  EXPECT_TRUE(h.TakeLeases("x").empty());
}

// A worker in quarantine loses its affinities, so a ready worker may take their jobs.
TEST(Core, AnAffinityKeepsNoJobAtAWorkerInQuarantine) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Submit("c", {{.tree = 1, .affinity = "a"}, {.tree = 2, .affinity = "a"}});
  h.Write();
  const wire::Lease first = h.TakeLeases("w").at(0);
  h.WorkerHello("x", 51);
  h.Report("w", first);
  const wire::Lease second = h.TakeLeases("w").at(0);
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(1), {second.lease}));
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases, std::vector{second.lease});
  h.Pass(milliseconds(200));
  const auto moved = h.TakeLeases("x");
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].job, second.job);
}

// Results are found by their time stamps.
TEST(Core, ResultsOfBeforeTheClockWasSetAreInDoubtToo) {
  OneLease h;
  h.Report("w", h.lease);
  h.Write();
  const WallTime stamped = h.disk.outcomes.at(h.lease.job).finished_at;
  h.Pass(seconds(1));
  h.now.wall += std::chrono::hours(1);
  h.Pass(seconds(1));
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(20)));
  h.Write();
  ASSERT_EQ(h.disk.suspected.size(), 1U);
  EXPECT_LE(h.disk.suspected[0].since, stamped);
  EXPECT_GE(h.disk.suspected[0].since, stamped - seconds(20));
}

TEST(Core, ABatchOfItsOwnThatThereIsNoRoomForIsDropped) {
  OneLease h;
  h.WorkerHello("x", 51);
  h.Report("w", h.lease);
  h.Write();
  h.Say("w", Canaries(wire::CanaryState::kDrifting, seconds(3)));
  h.RefuseWrites(FailureCode::kStorageFull);
  EXPECT_EQ(h.core->state().batches.size(), 0U);
}

TEST(Core, WorkersOfOneClassStateTimesAtOneClock) {
  Harness h;
  h.WorkerHello("w", 50, {.clock_mhz = 3700});
  EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("w")->reference_mhz, 3700);
  h.WorkerHello("x", 51, {.clock_mhz = 3900});
  EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("x")->reference_mhz, 3700);
  h.WorkerHello("y", 53);  // reports no clock
  EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("y")->reference_mhz, 0);
}

TEST(Core, TheClockOfAClassIsTheStoredResults) {
  Harness h;
  h.WorkerHello("w", 50, {.clock_mhz = 3700});
  const auto name = h.core->state().workers.all().begin()->second.facts.hardware.hardware_class;
  Recovered recovered = h.disk.Recover();
  recovered.epoch = 7;
  recovered.reference_clocks = {{.hardware_class = name, .mhz = 3600}};
  h.core = std::make_unique<Core>(Core::Options{});
  h.Give(std::move(recovered));
  h.WorkerHello("w", 50, {.clock_mhz = 3700});
  h.TakeCommand<wire::WorkerWelcome>("w");  // the earlier one
  EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("w")->reference_mhz, 3600);
}

TEST(Core, ThreadsGoToWorkersThatHaveThem) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50, {.credit = 9});
  h.Submit("c", {{.tree = 1, .threads = 4}, {.tree = 2}, {.tree = 3, .threads = 2}});
  h.Write();
  auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].job, MakeJobId(1, 1));
  h.WorkerHello("x", 51, {.credit = 9, .max_threads = 2});
  leases = h.TakeLeases("x");
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].job, MakeJobId(1, 2));
  h.Pass(seconds(31));
  h.Write();
  const Outcome& nobody = h.OutcomeOf(MakeJobId(1, 0));
  EXPECT_EQ(CodeOf(nobody), FailureCode::kNoMatchingWorker);
  EXPECT_NE(nobody.evaluation.failure().message.find("4 threads for a kernel"), std::string::npos);
}

TEST(Core, WhoAsksForMorePrecisionDoesNotGetWhatOthersAskedFor) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}, {.tree = 1, .precision = 0.001}, {.tree = 1, .precision = 0.001}});
  h.Write();
  h.WorkerHello("w", 50, {.credit = 9});
  EXPECT_EQ(h.TakeLeases("w").size(), 2U);  // the third follows the second
}

}  // namespace
}  // namespace loopfleet::coordinator
