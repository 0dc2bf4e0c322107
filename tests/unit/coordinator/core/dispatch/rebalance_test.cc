// When workers get more leases, and when they are asked to return some.

#include <gtest/gtest.h>

#include "coordinator/core/rules/placement.h"
#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

constexpr Refill kRefill{.jobs = 8, .work = milliseconds(10), .short_job = milliseconds(50)};

TEST(Refill, WhatIsNotKnownOrLongGoesOneByOne) {
  EXPECT_EQ(WorthSending(kRefill, {.job_took = Nanos{0}, .credit = 100}), 1U);
  EXPECT_EQ(WorthSending(kRefill, {.job_took = milliseconds(51), .credit = 100}), 1U);
}

TEST(Refill, ShortJobsGoEightOrMoreAtOnceAndMakeTenMilliseconds) {
  EXPECT_EQ(WorthSending(kRefill, {.job_took = milliseconds(10), .credit = 100}), 8U);
  EXPECT_EQ(WorthSending(kRefill, {.job_took = std::chrono::microseconds(100), .credit = 1000}),
            100U);
}

TEST(Refill, AWorkerNeverHasLessThanHalfOfItsCreditForIt) {
  EXPECT_EQ(WorthSending(kRefill, {.job_took = milliseconds(1), .credit = 8}), 4U);
  EXPECT_EQ(WorthSending(kRefill, {.job_took = milliseconds(1), .credit = 1}), 1U);
}

TEST(Core, AWorkerOfShortJobsIsRefilledInOneMessage) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50, {.credit = 16});
  std::vector<JobSetup> jobs;
  for (std::uint8_t tree = 1; tree <= 40; ++tree) jobs.push_back({.tree = tree});
  h.Submit("c", jobs);
  h.Write();
  auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 16U);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(h.TakeLeases("w").empty()) << i;
    Evaluation evaluation = h.GoodEvaluation(leases[i]);
    evaluation.stages[Stage::kMeasure] = milliseconds(2);
    h.ReportEvaluation("w", leases[i], evaluation);
  }
  const auto refill = h.TakeCommand<wire::Leases>("w");
  ASSERT_TRUE(refill);
  EXPECT_EQ(refill->leases.size(), 8U);
}

// Worker "w" has four long jobs, and "x" connects when the queue is empty.
struct Loaded : Harness {
  explicit Loaded(std::vector<std::string> can = {std::string(wire::kGiveBackCapability)}) {
    ClientHello("c", 1);
    WorkerHello("w", 50, {.credit = 4, .capabilities = std::move(can)});
    Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}, {.tree = 4}});
    Write();
    leases = TakeLeases("w");
    WorkerHello("x", 51, {.credit = 4});
  }
  std::vector<wire::Lease> leases;
};

TEST(Core, HalfOfWhatALoadedWorkerHasIsAskedBackForAnIdleOne) {
  Loaded h;
  h.Pass(milliseconds(100));
  const auto back = h.TakeCommand<wire::GiveBack>("w");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->leases, (std::vector{h.leases[3].lease, h.leases[2].lease}));
  EXPECT_TRUE(h.TakeLeases("x").empty());                     // not before "w" returns it
  h.Say("w", wire::Returned{.leases = {h.leases[3].lease}});  // the other one has begun
  const auto moved = h.TakeLeases("x");
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].job, h.leases[3].job);
  EXPECT_EQ(moved[0].attempt, 1U);
  h.Report("w", h.leases[2]);
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(h.leases[2].job).evaluation.ok());
}

TEST(Core, AJobThatNoWorkerCouldRunKeepsNoWorkerIdle) {
  Loaded h;
  h.Submit("c", {{.tree = 5, .labels = {"no worker has it"}}});
  h.Write();
  h.Pass(milliseconds(100));
  EXPECT_TRUE(h.TakeCommand<wire::GiveBack>("w"));
}

// Two workers idle, and only the second one could run what "w" has.
struct LoadedWith : Harness {
  explicit LoadedWith(const std::string& label) {
    ClientHello("c", 1);
    WorkerHello("w", 50,
                {.credit = 2,
                 .labels = {"big"},
                 .host = "one",
                 .capabilities = {std::string(wire::kGiveBackCapability)}});
    Submit("c", {{.tree = 1, .labels = {label}}, {.tree = 2, .labels = {label}}});
    Write();
    leases = TakeLeases("w");
    EXPECT_EQ(leases.size(), 2U);
  }
  void ExpectToMoveTo(const PeerId& peer) {
    Pass(milliseconds(100));
    ASSERT_TRUE(TakeCommand<wire::GiveBack>("w"));
    Say("w", wire::Returned{.leases = {leases[1].lease}});
    EXPECT_EQ(TakeLeases(peer).size(), 1U);
  }
  std::vector<wire::Lease> leases;
};

TEST(Core, AnIdleWorkerThatDoesNotFitKeepsNoOtherOneIdle) {
  LoadedWith h("big");
  h.WorkerHello("x", 51);
  h.WorkerHello("y", 52, {.labels = {"big"}});
  h.ExpectToMoveTo("y");
}

TEST(Core, AnIdleWorkerOfAnotherHostKeepsNoOtherOneIdle) {
  LoadedWith h("host=one");
  h.WorkerHello("x", 51, {.host = "another"});
  h.WorkerHello("y", 52, {.host = "one"});
  h.WorkerHello("z", 53, {.host = "zero"});
  h.ExpectToMoveTo("y");
}

// "v" has as much as "w", of what no other worker could run.
TEST(Core, ALoadedWorkerThatNoOtherCanHelpKeepsNoWorkerIdle) {
  Loaded h;
  h.WorkerHello(
      "v", 49,
      {.credit = 4, .labels = {"big"}, .capabilities = {std::string(wire::kGiveBackCapability)}});
  std::vector<JobSetup> jobs;
  for (std::uint8_t tree = 5; tree <= 8; ++tree) jobs.push_back({.tree = tree, .labels = {"big"}});
  h.Submit("c", jobs);
  h.Write();
  ASSERT_EQ(h.TakeLeases("v").size(), 4U);
  h.Pass(milliseconds(100));
  EXPECT_TRUE(h.TakeCommand<wire::GiveBack>("w"));
  EXPECT_FALSE(h.TakeCommand<wire::GiveBack>("v"));
}

// "v" has more leases than one tick looks at.
TEST(Core, ALoadedWorkerThatATickHadNoTimeForIsHelpedByTheNext) {
  Loaded h;
  h.WorkerHello("v", 49,
                {.credit = 4'000,
                 .labels = {"big"},
                 .capabilities = {std::string(wire::kGiveBackCapability)}});
  const JobSetup job{.tree = 5, .freshness = Freshness::kMeasureAgain, .labels = {"big"}};
  h.Submit("c", std::vector<JobSetup>(4'000, job));
  h.Write();
  ASSERT_EQ(h.TakeLeases("v").size(), 4'000U);
  h.Give(Tick{});
  EXPECT_FALSE(h.TakeCommand<wire::GiveBack>("w"));
  h.Give(Tick{});
  EXPECT_TRUE(h.TakeCommand<wire::GiveBack>("w"));
  EXPECT_FALSE(h.TakeCommand<wire::GiveBack>("v"));
}

TEST(Core, AskingBackIsNotRepeatedAtOnce) {
  Loaded h;
  h.Pass(milliseconds(500));
  EXPECT_TRUE(h.TakeCommand<wire::GiveBack>("w"));
  EXPECT_FALSE(h.TakeCommand<wire::GiveBack>("w"));
}

TEST(Core, WhoCannotGiveBackIsNotAsked) {
  Loaded h(std::vector<std::string>{});
  h.Pass(seconds(1));
  EXPECT_FALSE(h.TakeCommand<wire::GiveBack>("w"));
}

TEST(Core, LittleWorkIsNotMoved) {
  Loaded h;
  Evaluation quick = h.GoodEvaluation(h.leases[0]);
  quick.stages[Stage::kMeasure] = milliseconds(1);
  h.ReportEvaluation("w", h.leases[0], quick);
  h.Pass(milliseconds(500));
  EXPECT_FALSE(h.TakeCommand<wire::GiveBack>("w"));
}

TEST(Core, AReturnOfWhatItDoesNotHaveIsNothing) {
  Loaded h;
  h.Say("x", wire::Returned{.leases = {h.leases[3].lease}});
  EXPECT_TRUE(h.TakeLeases("x").empty());
}

}  // namespace
}  // namespace loopfleet::coordinator
