// Workers lost with jobs: what counts against a job, and which workers are reserved for it.

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

// The hello of a worker of this version.
Harness::Hello Announcing(std::uint32_t credit = 1) {
  return {.credit = credit,
          .capabilities = {std::string(wire::kAnnounceCapability),
                           std::string(wire::kGiveBackCapability)}};
}

TEST(Core, ALeaseThatNeverArrivedIsNoAttempt) {
  OneLease h;
  for (int loss = 0; loss < 5; ++loss) {
    for (int beat = 0; beat < 3; ++beat) {
      h.Pass(seconds(1));
      h.Heartbeat("w");
    }
    const auto again = h.TakeLeases("w");
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].attempt, 1U);
  }
}

// As one that cannot decode the message: its heartbeats go on, and it never has the lease.
TEST(Core, AWorkerThatDropsItsLeasesIsNotGivenThemWithoutEnd) {
  OneLease h;
  const std::uint32_t most = Limits{}.max_unseen_losses + Limits{}.max_attempts;
  std::uint32_t leases = 1;
  for (int beat = 0; beat < 200 && h.disk.outcomes.empty(); ++beat) {
    h.Pass(seconds(1));
    h.Heartbeat("w");
    leases += static_cast<std::uint32_t>(h.TakeLeases("w").size());
    h.Write();
  }
  EXPECT_EQ(leases, most);
  const Outcome outcome = h.OutcomeOf(MakeJobId(1, 0));
  EXPECT_EQ(CodeOf(outcome), FailureCode::kWorkerLost);
  EXPECT_EQ(outcome.attempts, Limits{}.max_attempts);
  EXPECT_NE(outcome.evaluation.failure().message.find("too old to read"), std::string::npos);
  h.Submit("c", {{.tree = 8}});
  h.Write();
  EXPECT_EQ(h.TakeLeases("w").at(0).attempt, 1U) << "other jobs are not to blame";
}

TEST(Core, ALeaseThatArrivedAndVanishedIsAnAttempt) {
  OneLease h;
  h.Heartbeat("w", {h.lease.lease});
  h.Pass(seconds(3));
  h.Heartbeat("w");
  EXPECT_EQ(h.TakeLeases("w").at(0).attempt, 2U);
}

TEST(Core, LostGrantsDoNotEndAnInnocentJob) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 7}});
  h.Write();
  for (std::uint8_t worker = 50; worker < 60; ++worker) {  // each is cut off as it gets its lease
    h.WorkerHello("w", worker, Announcing());
    const auto leases = h.TakeLeases("w");
    ASSERT_EQ(leases.size(), 1U);
    EXPECT_LE(leases[0].attempt, 2U);
    h.Pass(seconds(5));
  }
  h.WorkerHello("w", 60, Announcing());
  h.Report("w", h.TakeLeases("w").at(0));
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(1, 0)).evaluation.ok());
}

TEST(Core, LostGrantsAreBounded) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 7}});
  h.Write();
  for (std::uint8_t worker = 50; worker < 80 && h.disk.outcomes.empty(); ++worker) {
    h.WorkerHello("w", worker, Announcing());
    h.Pass(seconds(5));
    h.Write();
  }
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kWorkerLost);
}

TEST(Core, AJobThatWorkersHadWhenTheyWereLostIsGivenUpAfterThree) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 7}});
  h.Write();
  for (std::uint8_t worker = 50; worker < 53; ++worker) {
    h.WorkerHello("w", worker, Announcing());
    const wire::Lease lease = h.TakeLeases("w").at(0);
    h.Heartbeat("w", {lease.lease});
    h.Pass(seconds(5));
  }
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kWorkerLost);
}

TEST(Core, WhatWasLostWithAWorkerRunsAlone) {
  Harness h;
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}});
  h.Write();
  h.WorkerHello("w", 50, Announcing(3));
  EXPECT_EQ(h.TakeLeases("w").size(), 3U);
  h.Pass(seconds(5));  // lost; the job at fault is unknown
  h.WorkerHello("x", 51, Announcing(3));
  for (std::uint32_t index = 0; index < 3; ++index) {
    const auto leases = h.TakeLeases("x");
    ASSERT_EQ(leases.size(), 1U);
    EXPECT_EQ(leases[0].job, MakeJobId(1, index));
    h.Report("x", leases[0]);
  }
  h.Submit("c", {{.tree = 4}, {.tree = 5}});
  h.Write();
  EXPECT_EQ(h.TakeLeases("x").size(), 2U);  // no longer alone
}

TEST(Core, AWorkerIsReservedForAJobThatRunsAloneAndFinishesWhatItHas) {
  OneLease h;  // w has the job
  h.WorkerHello("x", 51, Announcing(4));
  h.Submit("c", {{.tree = 8}, {.tree = 9}});
  h.Write();
  const auto begun = h.TakeLeases("x");
  ASSERT_EQ(begun.size(), 2U);
  const auto beat = [&](int times) {
    for (int i = 0; i < times; ++i) {
      h.Pass(seconds(1));
      h.Heartbeat("x", {begun[0].lease, begun[1].lease});
    }
  };
  beat(4);  // w is lost
  EXPECT_TRUE(h.TakeLeases("x").empty());
  h.Submit("c", {{.tree = 10}});
  h.Write();
  EXPECT_TRUE(h.TakeLeases("x").empty());  // reserved
  h.Report("x", begun[0]);
  EXPECT_TRUE(h.TakeLeases("x").empty());
  h.Report("x", begun[1]);
  const auto alone = h.TakeLeases("x");
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].job, h.lease.job);
  h.Report("x", alone[0]);
  EXPECT_EQ(h.TakeLeases("x").at(0).job, MakeJobId(3, 0));
}

TEST(Core, WhatRunsAloneGoesToAWorkerWithoutAJobIfThereIsOne) {
  OneLease h;  // w has the job
  h.WorkerHello("x", 51, Announcing(2));
  h.WorkerHello("y", 52, Announcing(2));
  for (const std::uint8_t tree : {8, 9}) {
    h.Submit("c", {{.tree = tree}});
    h.Write();
  }
  const wire::Lease busy = h.TakeLeases("x").at(0);
  h.Report("y", h.TakeLeases("y").at(0));
  for (int i = 0; i < 4; ++i) {  // w is lost meanwhile
    h.Pass(seconds(1));
    h.Heartbeat("x", {busy.lease});
    h.Heartbeat("y");
  }
  const auto alone = h.TakeLeases("y");
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].job, h.lease.job);
}

TEST(Core, AReservedWorkerThatGoesFreesTheJob) {
  OneLease h;
  h.WorkerHello("x", 51, Announcing(4));
  h.Submit("c", {{.tree = 8}});
  h.Write();
  const wire::Lease begun = h.TakeLeases("x").at(0);
  for (int i = 0; i < 4; ++i) {
    h.Pass(seconds(1));
    h.Heartbeat("x", {begun.lease});
  }
  h.Say("x", wire::Goodbye{.returned = {begun.lease}});
  h.WorkerHello("y", 52, Announcing());
  EXPECT_EQ(h.TakeLeases("y").size(), 1U);
}

TEST(Core, ACancelledJobEndsItsReservation) {
  OneLease h;
  h.WorkerHello("x", 51, Announcing(4));
  h.Submit("c", {{.tree = 8}});
  h.Write();
  const wire::Lease begun = h.TakeLeases("x").at(0);
  for (int i = 0; i < 4; ++i) {
    h.Pass(seconds(1));
    h.Heartbeat("x", {begun.lease});
  }
  h.Ask("c", wire::CancelBatch{BatchId{1}});
  h.Write();
  h.Submit("c", {{.tree = 10}});
  h.Write();
  EXPECT_EQ(h.TakeLeases("x").size(), 1U);
}

// Job A was lost with a worker and queued; D, an equal job of another client, is queued behind it.
// Then x has room and is reserved for A, but must finish a job first.
struct LostAndEqual : Harness {
  LostAndEqual() {
    ClientHello("c", 1);
    ClientHello("d", 2);
    WorkerHello("w", 50, Announcing());
    Submit("c", {{.tree = 7}});
    Write();
    a = TakeLeases("w").at(0).job;
    WorkerHello("x", 51, Announcing(2));
    Submit("d", {{.tree = 8}, {.tree = 9}});  // d was served: c is next
    Write();
    busy = TakeLeases("x");
    EXPECT_EQ(busy.size(), 2U);
    for (int beat = 0; beat < 4; ++beat) {  // w is lost meanwhile
      Pass(seconds(1));
      Heartbeat("x", {busy[0].lease, busy[1].lease});
    }
    Submit("d", {{.tree = 7}});
    Write();
    Report("x", busy[0]);
    EXPECT_TRUE(std::holds_alternative<Retrying>(core->state().jobs.Find(a)->progress));
  }
  JobId a;
  std::vector<wire::Lease> busy;
};

TEST(Core, AJobThatWaitsToRunAloneAnswersItsEquals) {
  LostAndEqual h;
  h.WorkerHello("y", 52, Announcing());
  EXPECT_TRUE(h.TakeLeases("y").empty()) << "an equal of a job that waits is not to pass it";
  h.Report("x", h.busy[1]);
  const auto alone = h.TakeLeases("x");
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].job, h.a);
  h.Report("x", alone[0]);
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 4U);
}

TEST(Core, WhyAJobWaitsToRunAloneIsExplained) {
  LostAndEqual h;
  const auto told = h.TakeReply<wire::JobExplanation>("c", h.Ask("c", wire::ExplainJob{h.a}));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason,
            "queued: 1 worker went away with it, so it is to run alone: worker 51 is reserved for "
            "it, and finishes 1 job first");
}

// ---- leases that a worker claims to hold

TEST(Core, ALeaseThatWasTakenBackIsNotAdoptedInQuarantine) {
  OneLease h;
  h.Heartbeat("w", {h.lease.lease});
  h.Give(WorkerUnreachable{.peer = "w"});
  h.Say("w2",
        wire::WorkerHello{.worker = Named(50), .name = "worker 50"});  // without the lease: lost
  h.Say("w2", wire::Heartbeat{.canary_ratio = 1.5, .canary = wire::CanaryState::kDrifting});
  h.WorkerHello("w3", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  const auto revoked = h.TakeCommand<wire::Revoke>("w3");
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->leases, std::vector{h.lease.lease});
  // The worker is the last candidate: it gets the job again, under another lease.
  EXPECT_EQ(h.core->Leased(), 1U);
}

TEST(Core, ALeaseThatWasNeverGrantedForAJobIsNotAdopted) {
  OneLease h;
  h.Submit("c", {{.tree = 8}});
  h.Write();
  h.WorkerHello("x", 51,
                {.device = DeviceKind::kCuda,
                 .held = {{.lease = LeaseId{h.lease.lease.value - 1}, .job = MakeJobId(2, 0)}}});
  EXPECT_TRUE(h.TakeCommand<wire::Revoke>("x"));
  EXPECT_EQ(h.core->Leased(), 1U);
}

// Only a worker that had a job before the restart can know a lease of then.
TEST(Core, ALeaseOfAnEarlierRunIsNotAdoptedForAJobOfThisRun) {
  OneLease h;
  h.Restart();
  h.ClientHello("c", 1);
  h.Submit("c", {{.tree = 8}});
  h.Write();
  const JobId of_this_run = MakeJobId(2, 0);
  ASSERT_TRUE(h.core->Has(of_this_run));
  for (const LeaseId lease : {h.lease.lease, LeaseId{5}}) {
    h.WorkerHello("x", 51, {.held = {{.lease = lease, .job = of_this_run}}});
    const auto revoked = h.TakeCommand<wire::Revoke>("x");
    ASSERT_TRUE(revoked);
    EXPECT_EQ(revoked->leases, std::vector{lease});
  }
  EXPECT_EQ(h.core->Leased(), 0U);
}

TEST(Core, ALeaseOfAnEarlierRunIsAdoptedSoonAfterTheStartOnly) {
  OneLease h;
  h.Restart();
  h.Pass(Limits{}.late_reattach);
  h.WorkerHello("w", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  const auto revoked = h.TakeCommand<wire::Revoke>("w");
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->leases, std::vector{h.lease.lease});
  const auto again = h.TakeLeases("w");
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].job, h.lease.job);
}

// It was adopted in time, so the coordinator knows of it.
TEST(Core, ALeaseOfAnEarlierRunThatWasAdoptedIsKnownLaterToo) {
  OneLease h;
  h.Restart();
  const std::vector<wire::HeldLease> held = {{.lease = h.lease.lease, .job = h.lease.job}};
  h.WorkerHello("w", 50, {.held = held});
  h.Pass(Limits{}.late_reattach);  // silent: lost
  ASSERT_EQ(h.Workers(wire::WorkerState::kLost), 1U);
  h.WorkerHello("w2", 50, {.held = held});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w2"));
  EXPECT_EQ(h.core->Leased(), 1U);
}

TEST(Core, AfterARestartOnlyWhoMayRunAJobKeepsIt) {
  OneLease h;
  h.Restart();
  h.WorkerHello(
      "x", 51,
      {.device = DeviceKind::kCuda, .held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  EXPECT_TRUE(h.TakeCommand<wire::Revoke>("x"));
  h.WorkerHello("w", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w"));
  EXPECT_EQ(h.core->Leased(), 1U);
}

}  // namespace
}  // namespace loopfleet::coordinator
