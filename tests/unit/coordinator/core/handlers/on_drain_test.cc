// An operator drains and resumes workers.

#include <gtest/gtest.h>

#include "coordinator/core/handlers/show_fleet.h"
#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

Harness::Hello OnHost(std::string host, std::uint32_t credit = 1) {
  return {.credit = credit,
          .host = std::move(host),
          .capabilities = {std::string(wire::kGiveBackCapability)}};
}

wire::SetDrain Drain(std::string target) {
  return {.target = std::move(target), .reason = "new memory", .by = "ada"};
}
wire::SetDrain Resume(std::string target) {
  return {.target = std::move(target), .wish = wire::DrainAction::kResume, .by = "ada"};
}

struct TwoHosts : Harness {
  TwoHosts() {
    ClientHello("c", 1);
    WorkerHello("w", 50, OnHost("build-7", 4));
    WorkerHello("x", 51, OnHost("build-8", 4));
  }
  wire::WorkerInfo Shown(std::size_t which) {
    const auto number = Ask("c", wire::ListWorkers{});
    return TakeReply<wire::WorkerList>("c", number)->workers.at(which);
  }
};

TEST(Core, ADrainedHostTakesNothingNewAndGivesBackWhatItHasNotBegun) {
  TwoHosts h;
  h.Give(WorkerUnreachable{.peer = "x"});
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}});
  h.Write();
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 3U);
  const auto number = h.Ask("c", Drain("build-7"));
  const auto back = h.TakeCommand<wire::GiveBack>("w");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->leases.size(), 3U);
  h.Say("w", wire::Returned{.leases = {leases[1].lease, leases[2].lease}});
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.WorkerHello("x", 51, OnHost("build-8", 4));
  const auto elsewhere = h.TakeLeases("x");
  ASSERT_EQ(elsewhere.size(), 2U);
  EXPECT_EQ(elsewhere[0].attempt, 1U);
  h.Report("w", leases[0]);  // begun before the drain
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(leases[0].job).evaluation.ok());
  const auto concerned = h.TakeReply<wire::WorkerList>("c", number);
  ASSERT_TRUE(concerned);
  ASSERT_EQ(concerned->workers.size(), 1U);
  EXPECT_EQ(concerned->workers[0].state, wire::WorkerState::kDraining);
}

TEST(Core, ADrainIsAnsweredOnceItIsOnDisk) {
  TwoHosts h;
  const auto number = h.Ask("c", Drain("build-7"));
  EXPECT_FALSE(h.TakeReply<wire::WorkerList>("c", number));
  h.Write();
  EXPECT_TRUE(h.TakeReply<wire::WorkerList>("c", number));
  EXPECT_EQ(h.disk.drains.at("build-7").reason, "new memory");
}

TEST(Core, ADrainIsShownWithWhoWhyAndSinceWhen) {
  TwoHosts h;
  h.Ask("c", Drain("build-7"));
  const WallTime since = h.now.wall;
  h.Write();
  h.Pass(seconds(1));
  const auto drain = h.Shown(0).drain;
  ASSERT_TRUE(drain);
  EXPECT_EQ(drain->target, "build-7");
  EXPECT_EQ(drain->reason, "new memory");
  EXPECT_EQ(drain->by, "ada");
  EXPECT_EQ(drain->since, since);
  EXPECT_FALSE(h.Shown(1).drain);
}

TEST(Core, ADrainOfAHostOutlivesItsDaemonsAndTheCoordinator) {
  TwoHosts h;
  h.Ask("c", Drain("build-7"));
  h.Write();
  h.Restart();
  h.ClientHello("c", 1);
  h.WorkerHello("w2", 60, OnHost("build-7"));  // the daemon was restarted, too
  h.Submit("c", {{.tree = 1}});
  h.Write();
  h.Pass(seconds(2));
  EXPECT_TRUE(h.TakeLeases("w2").empty());
  h.Heartbeat("w2");
  EXPECT_TRUE(h.TakeLeases("w2").empty());
  h.Ask("c", Resume("build-7"));
  EXPECT_EQ(h.TakeLeases("w2").size(), 1U);
  h.Write();
  EXPECT_TRUE(h.disk.drains.empty());
}

// As during an upgrade of the only host that serves them.
TEST(Core, JobsThatOnlyADrainedWorkerCouldRunWaitForItsResume) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("w", 50, OnHost("build-7"));
  h.Ask("c", Drain("build-7"));
  h.Submit("c", {{.tree = 1}, {.tree = 2, .deadline_s = 20}});
  h.Write();
  for (int second = 0; second < 40; ++second) {
    h.Pass(seconds(1));
    h.Heartbeat("w");
  }
  h.Write();
  EXPECT_FALSE(h.disk.outcomes.contains(MakeJobId(1, 0)));
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 1))), FailureCode::kExpired);
  EXPECT_EQ(FleetModelOf(h.core->state(), h.now).unserved_jobs, 1U);  // a drain may be forgotten
  h.Ask("c", Resume("build-7"));
  EXPECT_EQ(h.TakeLeases("w").size(), 1U);
}

TEST(Core, NoJobWaitsForADrainedWorkerThatEnds) {
  for (const bool says_goodbye : {false, true}) {
    Harness h;
    h.ClientHello("c", 1);
    h.WorkerHello("w", 50, OnHost("build-7"));
    h.Ask("c", Drain("build-7"));
    h.Submit("c", {{.tree = 1}});
    h.Write();
    h.Heartbeat("w", {}, wire::DrainState::kDraining);  // told to stop
    if (says_goodbye) h.Say("w", wire::Goodbye{});
    for (int second = 0; second < 32; ++second) {
      h.Pass(seconds(1));
      if (!says_goodbye) h.Heartbeat("w", {}, wire::DrainState::kDraining);
    }
    h.Write();
    EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kNoMatchingWorker);
  }
}

TEST(Core, OneWorkerOfAHostCanBeDrained) {
  TwoHosts h;
  h.WorkerHello("y", 52, OnHost("build-7"));
  h.Ask("c", Drain("worker 50"));
  h.Ask("c", Drain(Named(51).ToString()));
  h.Write();
  EXPECT_EQ(h.Shown(0).state, wire::WorkerState::kDraining);
  EXPECT_EQ(h.Shown(1).state, wire::WorkerState::kDraining);
  EXPECT_EQ(h.Shown(2).state, wire::WorkerState::kReady);
}

TEST(Core, ADrainOfNobodyIsRefusedWithTheNearestName) {
  TwoHosts h;
  const auto number = h.Ask("c", Drain("biuld-7"));
  const auto refused = h.TakeReply<wire::Refused>("c", number);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->failure.code, FailureCode::kNotFound);
  EXPECT_NE(refused->failure.message.find("build-7"), std::string::npos);
  EXPECT_TRUE(h.unwritten.empty());
  const auto resume = h.Ask("c", Resume("build-9"));
  EXPECT_TRUE(h.TakeReply<wire::Refused>("c", resume));
}

TEST(Core, ADrainSaidTwiceIsOneAndKeepsItsTime) {
  TwoHosts h;
  h.Ask("c", Drain("build-7"));
  h.Write();
  const WallTime since = h.disk.drains.at("build-7").since;
  h.Pass(seconds(1));
  const auto again = h.Ask("c", Drain("build-7"));
  h.Write();
  EXPECT_TRUE(h.TakeReply<wire::WorkerList>("c", again));
  EXPECT_EQ(h.disk.drains.at("build-7").since, since);
  h.Ask("c", Resume("build-7"));
  h.Write();
  const auto resumed = h.Ask("c", Resume("build-7"));
  h.Write();
  EXPECT_TRUE(h.TakeReply<wire::WorkerList>("c", resumed));
}

TEST(Core, StrangersDrainNobody) {
  TwoHosts h;
  const auto number = h.Ask("stranger", Drain("build-7"));
  EXPECT_EQ(h.TakeReply<wire::Refused>("stranger", number)->failure.code,
            FailureCode::kUnauthenticated);
  EXPECT_EQ(h.Shown(0).state, wire::WorkerState::kReady);
}

TEST(Core, AWorkerThatDrainsByItselfAndByAnOperatorDrainsUntilBothEnd) {
  TwoHosts h;
  h.Ask("c", Drain("build-7"));
  h.Heartbeat("w", {}, wire::DrainState::kDraining);
  h.Ask("c", Resume("build-7"));
  EXPECT_EQ(h.Shown(0).state, wire::WorkerState::kDraining);
  h.Heartbeat("w");
  EXPECT_EQ(h.Shown(0).state, wire::WorkerState::kReady);
}

}  // namespace
}  // namespace loopfleet::coordinator
