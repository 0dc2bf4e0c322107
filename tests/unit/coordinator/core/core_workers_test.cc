#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "coordinator/core/core.h"
#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

// ---- code lookups ----

TEST(Core, TheStoreIsSearchedForTheCodeOfALease) {
  OneLease h;
  h.Say("w", wire::CodeLookup{.lease = h.lease.lease, .code_hash = "ab12"});
  ASSERT_EQ(h.code_lookups.size(), 1u);
  const AnswerCodeLookup& lookup = h.code_lookups[0];
  const Conditions conditions = *h.GoodEvaluation(h.lease).conditions;
  EXPECT_EQ(lookup.peer, "w");
  EXPECT_EQ(lookup.lookup.code_hash, "ab12");
  EXPECT_EQ(lookup.program, ContentKey::Of("tree 7"));
  EXPECT_EQ(lookup.key.hardware_class, conditions.hardware.hardware_class);
  EXPECT_EQ(lookup.key.compiler, conditions.compiler);
  EXPECT_EQ(lookup.key.policy, conditions.policy);
  EXPECT_EQ(lookup.key.measured_since, WallTime{}) << "the job accepts any age";
  EXPECT_EQ(lookup.measured_by, "") << "the job has no affinity";
}

TEST(Core, NoCodeIsSearchedForALeaseThatIsNotTheWorkersOrForAFreshJob) {
  OneLease h;
  h.WorkerHello("x", 51);
  h.Say("x", wire::CodeLookup{.lease = h.lease.lease, .code_hash = "ab12"});
  h.Say("w", wire::CodeLookup{.lease = LeaseId{h.lease.lease.value + 1000}, .code_hash = "ab12"});
  h.Report("w", h.lease);
  h.Say("w", wire::CodeLookup{.lease = h.lease.lease, .code_hash = "ab12"});
  EXPECT_TRUE(h.code_lookups.empty());
  EXPECT_FALSE(h.TakeCommand<wire::CodeLookupAnswer>("x").value().found);
  EXPECT_FALSE(h.TakeCommand<wire::CodeLookupAnswer>("w").value().found);
}

// ---- faulty workers ----

TEST(Core, ASilentWorkerIsLostAndItsJobGoesToAnother) {
  OneLease h;
  h.WorkerHello("x", 51);
  for (int i = 0; i < 4; ++i) {
    h.Pass(seconds(1));
    h.Heartbeat("x");
  }
  const auto leases = h.TakeLeases("x");
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].job, h.lease.job);
  EXPECT_EQ(leases[0].attempt, 2u);
  EXPECT_NE(leases[0].lease, h.lease.lease);
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), 1u);
}

TEST(Core, AWorkerThatStartsOnAHostTakesThePlaceOfOneLostThere) {
  Harness h;
  h.WorkerHello("a", 50, {.host = "one"});
  h.WorkerHello("b", 51, {.host = "one"});
  h.WorkerHello("c", 52, {.host = "two"});
  h.Pass(seconds(5));
  ASSERT_EQ(h.Workers(wire::WorkerState::kLost), 3u);
  h.WorkerHello("d", 53, {.host = "one"});
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), 2u);
  h.WorkerHello("e", 54, {.device = DeviceKind::kCuda, .host = "one"});  // not of its kind
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), 2u);
  h.WorkerHello("f", 55, {.host = "three"});
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), 2u);
  h.core->CheckInvariants();
}

TEST(Core, AWorkerThatStartsBeforeTheLossIsNoticedTakesThePlaceToo) {
  Harness h;
  h.WorkerHello("a", 50, {.host = "one"});
  h.WorkerHello("b", 51, {.host = "one"});
  h.Pass(seconds(1));
  h.WorkerHello("c", 52, {.host = "one"});  // a and b were killed
  for (int i = 0; i < 6; ++i) {
    h.Pass(seconds(1));
    h.Heartbeat("c");
  }
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), 1u);  // c stands for one of them
  EXPECT_EQ(h.Workers(wire::WorkerState::kReady), 1u);
  h.core->CheckInvariants();
}

TEST(Core, AllLostWorkersAreListedAndReattached) {
  constexpr std::uint8_t kWorkers = 150;
  Harness h;
  const auto hello_all = [&] {
    for (std::uint8_t i = 1; i <= kWorkers; ++i) {
      h.WorkerHello(fmt::format("w{}", i), i, {.host = fmt::format("host {}", i)});
    }
  };
  hello_all();
  h.Pass(seconds(5));
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), kWorkers);
  h.observations.clear();
  hello_all();
  EXPECT_EQ(h.Workers(wire::WorkerState::kReady), kWorkers);
  ASSERT_EQ(h.observations.size(), kWorkers);
  for (const Observation& observation : h.observations) {
    EXPECT_EQ(std::get<WorkerChanged>(observation).change, WorkerChange::kReattached);
  }
}

TEST(Core, LostWorkersMakeRoomForNewOnes) {
  Limits limits;
  limits.max_workers = 3;
  limits.max_workers_per_key = 2;
  Harness h(limits);
  h.keys = {{"a", "key"}, {"b", "key"}, {"c", "key"}};
  h.WorkerHello("a", 50);
  h.WorkerHello("b", 51);
  h.Pass(seconds(5));
  h.WorkerHello("c", 52);  // the key had as many as it may
  EXPECT_EQ(h.core->state().workers.size(), 2u);
  EXPECT_FALSE(h.TakeCommand<wire::Refused>("c"));
  h.WorkerHello("d", 53);
  h.WorkerHello("e", 54);  // so had the coordinator
  h.Pass(seconds(5));
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), 3u);
  h.WorkerHello("f", 55);
  EXPECT_EQ(h.core->state().workers.size(), 3u);
  EXPECT_FALSE(h.TakeCommand<wire::Refused>("f"));
}

// A worker repeats its hello while the answer is late, as after a slow start. Leases granted after
// the first hello are in flight.
TEST(Core, AHelloThatCrossedItsLeasesTakesNoneBack) {
  OneLease h;
  for (int i = 0; i < 5; ++i) h.WorkerHello("w", 50);
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Heartbeat("w", {h.lease.lease});
  h.Report("w", h.lease);
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(1, 0)).evaluation.ok());
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 1u);
}

TEST(Core, ALeaseThatNeverArrivedIsGrantedAnewInTheEnd) {
  OneLease h;
  h.WorkerHello("w", 50);
  for (int i = 0; i < 4; ++i) {
    h.Pass(seconds(1));
    h.Heartbeat("w");
  }
  EXPECT_EQ(h.TakeLeases("w").size(), 1u);
}

TEST(Core, OverANewConnectionWhatIsNotHeldIsGrantedAnewAtOnce) {
  OneLease h;
  h.WorkerHello("again", 50);
  EXPECT_EQ(h.TakeLeases("again").size(), 1u);
}

TEST(Core, AWorkerThatIsHeardKeepsItsJob) {
  OneLease h;
  h.WorkerHello("x", 51);
  for (int i = 0; i < 10; ++i) {
    h.Pass(seconds(1));
    h.Heartbeat("w", {h.lease.lease});
    h.Heartbeat("x");
  }
  EXPECT_TRUE(h.TakeLeases("x").empty());
}

TEST(Core, AfterAStandstillOfItsOwnNobodyIsLost) {
  OneLease h;
  h.WorkerHello("x", 51);
  h.Pass(milliseconds(200));
  h.now.instant += seconds(600);  // the machine was suspended; the worker's messages are unread
  h.Give(Tick{});
  EXPECT_TRUE(h.TakeLeases("x").empty());
  h.Pass(seconds(4));
  EXPECT_EQ(h.Workers(wire::WorkerState::kLost), 2u);
}

TEST(Core, ALateReportIsAcknowledgedAndDropped) {
  OneLease h;
  h.Pass(seconds(5));  // lost
  h.WorkerHello("x", 51);
  const auto second = h.TakeLeases("x").at(0);
  h.Report("w", h.lease);  // the connection is unknown by now
  EXPECT_TRUE(h.TakeCommand<wire::HelloWanted>("w"));
  h.WorkerHello("w", 50);
  h.Report("w", h.lease);
  EXPECT_EQ(h.TakeCommand<wire::ReportsStored>("w")->leases, std::vector{h.lease.lease});
  EXPECT_TRUE(h.unwritten.empty());
  h.Report("x", second);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).worker, "worker 51");
}

TEST(Core, AReportForAnotherJobOrFromAnotherWorkerIsDropped) {
  OneLease h;
  h.WorkerHello("x", 51);
  h.Report("x", h.lease);
  wire::Lease wrong = h.lease;
  wrong.job.index = 1;
  h.ReportEvaluation("w", wrong, h.GoodEvaluation(h.lease));
  EXPECT_TRUE(h.TakeCommand<wire::ReportsStored>("x"));
  EXPECT_TRUE(h.TakeCommand<wire::ReportsStored>("w"));
  EXPECT_TRUE(h.unwritten.empty());
}

TEST(Core, ARepeatedReportIsOneOutcome) {
  OneLease h;
  h.Report("w", h.lease);
  h.Report("w", h.lease);
  EXPECT_EQ(h.unwritten.size(), 1u);
  EXPECT_FALSE(h.TakeCommand<wire::ReportsStored>("w"));
  h.Write();
  h.Report("w", h.lease);
  EXPECT_TRUE(h.TakeCommand<wire::ReportsStored>("w"));
}

TEST(Core, AJobThatLosesThreeWorkersIsWorkerLost) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 7}, {.tree = 7}});
  h.Write();
  for (std::uint8_t worker = 50; worker < 53; ++worker) {
    h.WorkerHello("w", worker);
    EXPECT_EQ(h.TakeLeases("w").size(), 1u);
    h.Pass(seconds(5));
  }
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kWorkerLost);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 3u);
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 1))),
            FailureCode::kWorkerLost);  // it must not cost more workers
}

TEST(Core, WhatTheWorkerIsToBlameForIsTriedThreeTimes) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 7}});
  h.Write();
  h.WorkerHello("w", 50);
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    const auto lease = h.TakeLeases("w").at(0);
    EXPECT_EQ(lease.attempt, attempt);
    h.ReportFailure("w", lease, FailureCode::kDeviceFault);
  }
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kDeviceFault);
}

TEST(Core, FailuresOfTheJobAreFinal) {
  OneLease h;
  h.ReportFailure("w", h.lease, FailureCode::kRunTimeout);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kRunTimeout);
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 1u);
}

TEST(Core, AnImpossibleReportNeverBecomesAMeasurement) {
  const std::vector<void (*)(Evaluation&)> lies = {
      [](Evaluation& e) { std::get<Measurement>(e.verdict).elapsed_ns = -1; },
      [](Evaluation& e) { std::get<Measurement>(e.verdict).elapsed_ns = 0; },
      [](Evaluation& e) {
        std::get<Measurement>(e.verdict).elapsed_mean_ns = std::numeric_limits<double>::quiet_NaN();
      },
      [](Evaluation& e) { std::get<Measurement>(e.verdict).elapsed_high_ns = 1; },
      [](Evaluation& e) { std::get<Measurement>(e.verdict).samples_ns.clear(); },
      // Only the database thins samples; a worker reports all of them.
      [](Evaluation& e) {
        std::get<Measurement>(e.verdict).thinned =
            Thinned{.samples_before = 4, .accepted_before = 4};
      },
      [](Evaluation& e) { e.subject->bytes[0] ^= 1; }, [](Evaluation& e) { e.subject.reset(); },
      [](Evaluation& e) { e.conditions.reset(); },
      // The job is timed.
      [](Evaluation& e) { e.verdict = Observed{.values = {{"clock_mhz", 3700.0}}}; },
      [](Evaluation& e) { e.conditions->hardware.hardware_class = "another"; },
      [](Evaluation& e) { e.conditions->policy = "another"; },
      [](Evaluation& e) { e.conditions->hardware.device = DeviceKind::kCuda; },
      [](Evaluation& e) { e.conditions->threads = 2; },  // the job asked for one, and warm
      [](Evaluation& e) { e.conditions->cache = CacheState::kCold; },
      [](Evaluation& e) {
        e.verdict = Failure{.code = FailureCode::kRunCrash, .message = "test"};
        e.conditions->threads = 2;
      },
      // An interval so wide that it agrees with any measurement.
      [](Evaluation& e) { std::get<Measurement>(e.verdict).elapsed_high_ns = 1e12; },
      [](Evaluation& e) {
        auto& m = std::get<Measurement>(e.verdict);
        m.elapsed_high_ns = 1e12;
        m.spread = (m.elapsed_high_ns - m.elapsed_low_ns) / (2 * m.elapsed_ns);
      },
      [](Evaluation& e) { std::get<Measurement>(e.verdict).spread = 0.01; },
      [](Evaluation& e) { std::get<Measurement>(e.verdict).grade = Grade::kA; },
      [](Evaluation& e) {
        auto& m = std::get<Measurement>(e.verdict);
        m.elapsed_ns = m.elapsed_low_ns = 9;
        m.spread = 1.0 / 9;
      },
      [](Evaluation& e) { std::get<Measurement>(e.verdict).elapsed_min_ns = 5; },
      [](Evaluation& e) { std::get<Measurement>(e.verdict).elapsed_mean_ns = 5; },
      [](Evaluation& e) {
        std::get<Measurement>(e.verdict).sample_flags = {kSamplePreempted, kSamplePreempted,
                                                         kSamplePreempted};
      },
      [](Evaluation& e) { e.flop_count = 2 * kFlopCount; }, [](Evaluation& e) { e.flop_count = 0; },
      // PostgreSQL has no room for these: its copy would stop.
      [](Evaluation& e) { e.scratch_bytes = std::uint64_t{1} << 63; },
      [](Evaluation& e) { std::get<Measurement>(e.verdict).iterations_per_sample = UINT64_MAX; },
      [](Evaluation& e) {
        e.verdict = Failure{.code = FailureCode::kRunTimeout, .message = "test"};
        e.subject.reset();
        e.flop_count = UINT64_MAX;
      },
      [](Evaluation& e) {
        e.verdict = Failure{.code = FailureCode::kRunTimeout, .message = "test"};
        e.subject.reset();
        e.conditions->threads = UINT32_MAX;
      },
      [](Evaluation& e) {
        e.verdict = Failure{
            .code = FailureCode::kRunTimeout, .message = "test", .action_index = UINT32_MAX};
      },
      [](Evaluation& e) { e.stages[Stage::kCompile] = Nanos(-1); },
      // Sums of such durations overflow, and no client could read the stored result.
      [](Evaluation& e) { e.stages[Stage::kQueue] = Nanos::max(); },
      [](Evaluation& e) { e.stages[Stage::kMeasure] = Nanos::max(); },
      [](Evaluation& e) {
        e.verdict = Failure{.code = FailureCode::kRunTimeout, .message = "test"};
        e.stages[Stage::kQueue] = Nanos::max();
      }};
  for (std::size_t i = 0; i < lies.size(); ++i) {
    OneLease h;
    Evaluation evaluation = h.GoodEvaluation(h.lease);
    lies[i](evaluation);
    h.ReportEvaluation("w", h.lease, evaluation);
    h.Write();
    EXPECT_TRUE(h.disk.outcomes.empty()) << i;
    EXPECT_EQ(h.TakeLeases("w").at(0).attempt, 2u) << i;
  }
}

// What a report says about its worker must be what the worker said hello with.
TEST(Core, AReportOfAnotherHostIsolationOrClockIsRefused) {
  using Lie = void (*)(Evaluation&);
  const std::vector<std::pair<Lie, std::string>> lies = {
      {[](Evaluation& lie) { lie.conditions->hardware.host = "elsewhere"; },
       "its host 'elsewhere'"},
      {[](Evaluation& lie) { lie.conditions->isolation = "seccomp"; }, "its isolation 'seccomp'"},
      {[](Evaluation& lie) { lie.conditions->hardware.clock_mhz = 1e9; }, "no reference clock"},
      {[](Evaluation& lie) { lie.conditions->hardware.clock_mhz = -1; }, "no reference clock"},
      {[](Evaluation& lie) { std::get<Measurement>(lie.verdict).clock_before_mhz = 1e9; },
       "no clock"},
      {[](Evaluation& lie) { std::get<Measurement>(lie.verdict).clock_after_mhz = 1; },
       "no clock"}};
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50, {.host = "here", .isolation = "process+rlimits"});
  const auto honest = [&](const wire::Lease& lease) {
    Evaluation evaluation = h.GoodEvaluation(lease);
    evaluation.conditions->hardware.host = "here";
    evaluation.conditions->isolation = "process+rlimits";
    return evaluation;
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    SCOPED_TRACE(lies[i].second);
    h.Submit("c", {{.tree = static_cast<std::uint8_t>(i + 1)}});
    h.Write();
    const wire::Lease lease = h.TakeLeases("w").at(0);
    Evaluation evaluation = honest(lease);
    lies[i].first(evaluation);
    h.observations.clear();
    h.ReportEvaluation("w", lease, std::move(evaluation));
    const auto refused = std::ranges::find_if(h.observations, [](const Observation& one) {
      return std::holds_alternative<ReportWasImplausible>(one);
    });
    ASSERT_NE(refused, h.observations.end());
    const std::string& reason = std::get<ReportWasImplausible>(*refused).reason;
    EXPECT_NE(reason.find(lies[i].second), std::string::npos) << reason;
    const wire::Lease again = h.TakeLeases("w").at(0);
    h.ReportEvaluation("w", again, honest(again));
    h.Write();
    EXPECT_TRUE(h.OutcomeOf(again.job).evaluation.ok());
  }
}

// Workers of 1.1 that do not state their isolation yet are believed.
TEST(Core, AnOlderWorkersIsolationIsTakenFromItsReport) {
  OneLease h;
  Evaluation evaluation = h.GoodEvaluation(h.lease);
  evaluation.conditions->isolation = "process+rlimits";
  h.ReportEvaluation("w", h.lease, std::move(evaluation));
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(h.lease.job).evaluation.ok());
}

// The first clock of a class becomes its reference clock and is stored.
TEST(Core, AWorkerWithAnImpossibleClockIsRefusedAndSetsNoReference) {
  for (const double mhz : {1e300, 20'001.0, 9.0, -3'000.0}) {
    Harness h;
    h.WorkerHello("w", 50, {.clock_mhz = mhz});
    const auto refused = h.TakeCommand<wire::Refused>("w");
    ASSERT_TRUE(refused) << mhz;
    EXPECT_EQ(refused->failure.code, FailureCode::kMalformed);
    EXPECT_NE(refused->failure.message.find("MHz"), std::string::npos);
    EXPECT_EQ(h.core->state().workers.size(), 0U);
    h.WorkerHello("x", 51, {.clock_mhz = 3'000});
    EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("x")->reference_mhz, 3'000);
  }
}

wire::WorkerHello OfClass(std::uint8_t worker, std::string hardware_class, double clock_mhz) {
  wire::WorkerHello hello{.worker = Named(worker), .name = "w", .credit = 1};
  hello.hardware.hardware_class = std::move(hardware_class);
  hello.hardware.clock_mhz = clock_mhz;
  return hello;
}

TEST(CoreWorkers, ClassesOfDepartedWorkersLeaveRoomForOthers) {
  Limits limits;
  limits.max_hardware_classes = 2;
  Harness h(limits);
  h.ClientHello("c", 1);
  h.WorkerHello("measured", 50, {.clock_mhz = 3'700});
  h.Submit("c", {{.tree = 1}});
  h.Write();
  h.Report("measured", h.TakeLeases("measured").at(0));
  h.Say("measured", wire::Goodbye{});
  for (std::uint8_t i = 0; i < 5; ++i) {
    h.Say("w", OfClass(60 + i, fmt::format("class {}", i), 1'000));
    EXPECT_TRUE(h.TakeCommand<wire::WorkerWelcome>("w")) << i;
    h.Say("w", wire::Goodbye{});
  }
  h.Say("first", OfClass(70, "a new class", 2'000));
  h.Say("second", OfClass(71, "a new class", 2'100));
  EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("second")->reference_mhz, 2'000);
  // The class with an outcome keeps its clock without a worker. There is no room for a third one.
  h.Say("third", OfClass(72, "a third class", 3'000));
  h.Say("fourth", OfClass(73, "a third class", 3'100));
  EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("fourth")->reference_mhz, 3'100);
  h.WorkerHello("again", 51, {.clock_mhz = 3'900});
  EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("again")->reference_mhz, 3'700);
}

TEST(CoreWorkers, AClassKeepsTheClockOfAJobThatItsWorkersWereLostWith) {
  Limits limits;
  limits.max_hardware_classes = 1;
  Harness h(limits);
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}});
  h.Write();
  for (std::uint8_t worker = 50; worker < 53; ++worker) {
    h.WorkerHello("w", worker, {.clock_mhz = 3'700});
    h.Heartbeat("w", {h.TakeLeases("w").at(0).lease});
    h.Pass(seconds(5));
  }
  h.Say("x", OfClass(60, "another class", 1'000));
  h.WorkerHello("again", 61, {.clock_mhz = 3'900});
  EXPECT_EQ(h.TakeCommand<wire::WorkerWelcome>("again")->reference_mhz, 3'700);
}

// 100 flop in 10 ns are 10 GFLOP/s.
struct OfAPeak : Harness {
  explicit OfAPeak(Hello hello) {
    WorkerHello("first", 49, {.clock_mhz = 3'000});  // sets the clock of the class
    Say("first", wire::Goodbye{});
    ClientHello("c", 1);
    Submit("c", {{.tree = 7}});
    Write();
    WorkerHello("w", 50, std::move(hello));
    lease = TakeLeases("w").at(0);
  }
  bool IsBelieved(double stated_peak = 0) {
    Evaluation evaluation = GoodEvaluation(lease);
    evaluation.conditions->hardware.peaks.flop_per_second = stated_peak;
    ReportEvaluation("w", lease, std::move(evaluation));
    Write();
    return !disk.outcomes.empty();
  }
  wire::Lease lease;
};

TEST(Core, NobodyIsQuickerThanThePeakThatItSaidHelloWith) {
  EXPECT_TRUE(OfAPeak({.flop_per_second = 0}).IsBelieved());  // not measured
  EXPECT_TRUE(OfAPeak({.flop_per_second = 10e9}).IsBelieved());
  EXPECT_TRUE(OfAPeak({.flop_per_second = 9.2e9}).IsBelieved());
  EXPECT_FALSE(OfAPeak({.flop_per_second = 9e9}).IsBelieved());
  // A core that was contended at its hello may exceed that peak, by a factor of two at most.
  EXPECT_TRUE(OfAPeak({.flop_per_second = 5e9}).IsBelieved(9.9e9));
  EXPECT_FALSE(OfAPeak({.flop_per_second = 4e9}).IsBelieved(9.9e9));
  EXPECT_FALSE(OfAPeak({.flop_per_second = 9e9}).IsBelieved(1e9));
}

// Times are stated at the clock of the class, so the peak is scaled to it, too.
TEST(Core, ThePeakOfAWorkerGoesWithItsClock) {
  EXPECT_TRUE(OfAPeak({.clock_mhz = 2'000, .flop_per_second = 6.5e9}).IsBelieved());
  EXPECT_FALSE(OfAPeak({.clock_mhz = 4'000, .flop_per_second = 11e9}).IsBelieved());
}

TEST(Core, AWorkerThatSaysGoodbyeCostsNoAttempt) {
  OneLease h;
  h.Say("w", wire::Goodbye{.returned = {h.lease.lease}});
  h.WorkerHello("x", 51);
  EXPECT_EQ(h.TakeLeases("x").at(0).attempt, 1u);
  EXPECT_EQ(h.core->state().workers.size(), 1u);
}

// A worker without work says goodbye at once, and leases may be on their way to it.
TEST(Core, ALeaseThatCrossedAGoodbyeCostsNoAttemptAndNeedNotRunAlone) {
  OneLease h;
  h.Say("w", wire::Goodbye{});
  h.Submit("c", {{.tree = 8}});
  h.Write();
  h.WorkerHello("x", 51, {.credit = 2});
  const auto leases = h.TakeLeases("x");
  ASSERT_EQ(leases.size(), 2u);
  EXPECT_EQ(leases[0].job, h.lease.job);
  EXPECT_EQ(leases[0].attempt, 1u);
}

TEST(Core, AJobThatAWorkerHeldAtItsGoodbyeIsLost) {
  OneLease h;
  h.Heartbeat("w", {h.lease.lease});
  h.Say("w", wire::Goodbye{});
  h.WorkerHello("x", 51);
  EXPECT_EQ(h.TakeLeases("x").at(0).attempt, 2u);
}

TEST(Core, ADrainingWorkerGetsNothingMore) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50);
  h.Heartbeat("w", {}, wire::DrainState::kDraining);
  h.Submit("c", {{.tree = 1}});
  h.Write();
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Heartbeat("w");
  EXPECT_EQ(h.TakeLeases("w").size(), 1u);
}

TEST(Core, LeasesThatNeverArrivedGoBack) {
  OneLease h;
  h.Pass(seconds(1));
  h.Heartbeat("w");  // may have crossed the lease
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Pass(seconds(2));
  h.Heartbeat("w");
  const auto again = h.TakeLeases("w");
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].attempt, 1u);
}

TEST(Core, LeasesThatCouldNotBeSentGoBackUncounted) {
  OneLease h;
  h.Give(WorkerUnreachable{.peer = "w", .undelivered = {h.lease.lease}});
  h.WorkerHello("x", 51);
  EXPECT_EQ(h.TakeLeases("x").at(0).attempt, 1u);
}

// A revocation sent just before the leases already found the connection broken.
TEST(Core, LeasesThatCouldNotBeSentEitherGoBackUncounted) {
  OneLease h;
  h.Give(WorkerUnreachable{.peer = "w"});
  h.Give(WorkerUnreachable{.peer = "w", .undelivered = {h.lease.lease}});
  h.WorkerHello("x", 51);
  const auto leases = h.TakeLeases("x");
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].attempt, 1u);
}

TEST(Core, AWorkerMayComeBackOverAnotherConnectionAndKeepItsLease) {
  OneLease h;
  h.Give(WorkerUnreachable{.peer = "w"});
  h.WorkerHello("x", 51);
  EXPECT_TRUE(h.TakeLeases("x").empty());
  h.WorkerHello("w2", 50, {.held = {{h.lease.lease, h.lease.job}}});
  h.Report("w2", h.lease);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).attempts, 1u);
}

TEST(Core, WhatAWorkerNoLongerHoldsAtHelloGoesBack) {
  OneLease h;
  h.WorkerHello("w2", 50);  // the same daemon without the lease, which never arrived
  EXPECT_EQ(h.TakeLeases("w2").at(0).attempt, 1u);
}

TEST(Core, AJobWithoutAnyWorkerWaitsForTheGraceAndNoLonger) {
  Harness h;
  h.ClientHello("c", 1);
  h.Pass(seconds(60));  // idle time does not count as waiting time
  h.Submit("c", {{.tree = 1}, {.tree = 2, .placement = Placement::kCuda}});
  h.Write();
  h.Pass(seconds(29));
  h.Write();
  EXPECT_TRUE(h.disk.outcomes.empty());
  h.WorkerHello("w", 50);
  h.Pass(seconds(2));
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 1))), FailureCode::kNoMatchingWorker);
  EXPECT_FALSE(h.disk.outcomes.contains(MakeJobId(1, 0)));
}

// ---- restarts ----

TEST(Core, AfterARestartAWorkerKeepsWhatItRuns) {
  OneLease h;
  h.Restart();
  h.WorkerHello("x", 51);
  EXPECT_TRUE(h.TakeLeases("x").empty());  // it may still run somewhere
  h.Report("w", h.lease);
  EXPECT_TRUE(h.TakeCommand<wire::HelloWanted>("w"));
  h.WorkerHello("w", 50, {.held = {{h.lease.lease, h.lease.job}}});
  h.Pass(seconds(2));
  EXPECT_TRUE(h.TakeLeases("x").empty());
  h.Report("w", h.lease);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).worker, "worker 50");
  EXPECT_EQ(h.TakeCommand<wire::ReportsStored>("w")->leases, std::vector{h.lease.lease});
}

TEST(Core, AfterARestartAJobThatNobodyClaimsRunsAnew) {
  OneLease h;
  h.Restart();
  h.WorkerHello("x", 51);
  h.Pass(seconds(1));
  const auto lease = h.TakeLeases("x").at(0);
  EXPECT_EQ(lease.job, h.lease.job);
  EXPECT_NE(lease.lease, h.lease.lease);
  for (int i = 0; i < 19; ++i) {  // until the wait for returning workers is over
    h.Heartbeat("x", {lease.lease});
    h.Pass(seconds(1));
  }
  h.WorkerHello("w", 50, {.held = {{h.lease.lease, h.lease.job}}});
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases, std::vector{h.lease.lease});
}

// A worker keeps its reports until they are on disk, and lists them in its hello: one with more of
// them than a message may list could never come back.
TEST(Core, NoWorkerGetsMoreLeasesThanItCanListWithItsReports) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", std::vector<JobSetup>(10'000, JobSetup{.freshness = Freshness::kMeasureAgain}));
  h.Write();
  h.WorkerHello("w", 50, {.credit = 500});
  std::size_t granted = 0;
  for (auto leases = h.TakeLeases("w"); !leases.empty(); leases = h.TakeLeases("w")) {
    granted += leases.size();
    wire::Reports reports;
    for (const wire::Lease& lease : leases) {
      reports.reports.push_back(
          {.lease = lease.lease, .job = lease.job, .evaluation = h.GoodEvaluation(lease)});
    }
    h.Say("w", std::move(reports));  // nothing is written
  }
  EXPECT_EQ(granted, wire::kMaxLeasesPerMessage);
  const auto number = h.Ask("c", wire::ExplainJob{.job = MakeJobId(1, 9'999)});
  const auto why = h.TakeReply<wire::JobExplanation>("c", number);
  ASSERT_TRUE(why.has_value());
  EXPECT_NE(why->reason.find("the disk is slow or full"), std::string::npos) << why->reason;
  h.Write();
  EXPECT_EQ(h.TakeLeases("w").size(), 500u);
}

TEST(Core, LeasesThatWereNeverGivenOutAreNotAdopted) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}});
  h.Write();
  const LeaseId future{h.core->state().epoch << 40 | 1};
  h.WorkerHello("w", 50, {.held = {{future, MakeJobId(1, 0)}}});
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases, std::vector{future});
  EXPECT_EQ(h.TakeLeases("w").size(), 1u);
}

TEST(Core, ARestartLosesNothingThatWasAcceptedAndKeepsTheSequence) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}});
  h.Write();
  h.WorkerHello("w", 50);
  h.Report("w", h.TakeLeases("w").at(0));
  h.Write();
  h.Report("w", h.TakeLeases("w").at(0));  // reported, but not on disk
  h.Restart();
  h.WorkerHello("w", 51, {.credit = 9});
  h.Pass(seconds(1));
  for (const auto& lease : h.TakeLeases("w")) h.Report("w", lease);
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 3u);
  EXPECT_EQ(h.core->state().batches.size(), 0u);
}

TEST(Core, AnOpenBatchCanBeAppendedToAfterARestart) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}}, {.request = 1, .end = wire::BatchEnd::kMoreFollows});
  h.Write();
  h.Restart();
  h.ClientHello("c", 1);
  const auto number = h.Submit("c", {{.tree = 2}}, {.request = 2, .append_to = BatchId{1}});
  h.Write();
  EXPECT_EQ(h.MustAccept("c", number).first_index, 1u);
}

TEST(Core, AJobWhoseRowIsDamagedEndsAsCorrupt) {
  OneLease h;
  Recovered recovered = h.disk.Recover();
  recovered.damaged.push_back(recovered.jobs.at(0).id);
  recovered.jobs.clear();
  h.core = std::make_unique<Core>(Core::Options{});
  h.Give(std::move(recovered));
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kStorageCorrupt);
}

}  // namespace
}  // namespace loopfleet::coordinator
