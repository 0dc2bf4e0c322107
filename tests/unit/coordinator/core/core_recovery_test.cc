// Recovery piece by piece: jobs are dispatched while others are still to be read, and a returning
// worker keeps a job that is still to be read.

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

// Three unfinished jobs of one batch; the previous coordinator leased the first one to worker 50.
// The new coordinator has recovered the batch but no job.
struct ToBeRecovered : Harness {
  ToBeRecovered() {
    ClientHello("c", 1);
    const auto number = Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}});
    Write();
    MustAccept("c", number);
    WorkerHello("w", 50);
    lease = TakeLeases("w").at(0);
    Recovered recovered = disk.Recover();
    ++disk.starts;
    recovered.epoch = disk.starts;
    jobs = std::move(recovered.jobs);
    recovered.jobs.clear();
    recovered.jobs_to_come = jobs.size();
    commands.clear();
    core = std::make_unique<Core>(Core::Options{.limits = limits});
    Give(std::move(recovered));
  }
  void Recover(JobsRecovered::Part part, std::vector<std::size_t> which) {
    JobsRecovered event{.part = part};
    for (const std::size_t index : which) event.jobs.push_back(jobs.at(index));
    Give(std::move(event));
    core->CheckInvariants();
  }

  wire::Lease lease;
  std::vector<Recovered::Job> jobs;
};

using Part = JobsRecovered::Part;

TEST(CoreRecovery, JobsAreDispatchedBeforeAllAreRead) {
  ToBeRecovered h;
  h.Recover(Part::kInOrder, {0});
  h.WorkerHello("v", 51, {.credit = 3});
  h.Pass(seconds(1));
  EXPECT_EQ(h.TakeLeases("v").size(), 1u);
  h.Recover(Part::kLast, {1, 2});
  EXPECT_EQ(h.TakeLeases("v").size(), 2u);
}

TEST(CoreRecovery, AWorkerKeepsWhatWasReadForIt) {
  ToBeRecovered h;
  h.Recover(Part::kEarly, {0});
  h.observations.clear();
  h.WorkerHello("w2", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w2"));
  ASSERT_EQ(h.observations.size(), 1u);
  EXPECT_EQ(std::get<WorkerChanged>(h.observations[0]).change, WorkerChange::kReattached);
  h.Recover(Part::kLast, {0, 1, 2});
  h.Report("w2", h.lease);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(h.lease.job).attempts, 1u);
}

// It has given the job back, and has been granted it again.
TEST(CoreRecovery, AWorkerMayHoldTwoLeasesOfAJob) {
  ToBeRecovered h;
  h.Recover(Part::kEarly, {0, 0});
  const LeaseId newer{h.lease.lease.value + 1};
  h.WorkerHello("w2", 50,
                {.held = {{.lease = h.lease.lease, .job = h.lease.job},
                          {.lease = newer, .job = h.lease.job}}});
  const auto revoked = h.TakeCommand<wire::Revoke>("w2");
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->leases, std::vector{h.lease.lease});
  h.Recover(Part::kLast, {0, 1, 2});
  h.lease.lease = newer;
  h.Report("w2", h.lease);
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(h.lease.job).evaluation.is_timed());
}

// It finished them while no coordinator was there, so no other worker need run them again.
TEST(CoreRecovery, AWorkerKeepsMoreThanItsCredit) {
  ToBeRecovered h;
  h.Recover(Part::kLast, {0, 1, 2});
  std::vector<wire::Lease> leases(3, h.lease);
  std::vector<wire::HeldLease> held;
  for (std::uint32_t i = 0; i < leases.size(); ++i) {
    leases[i].lease.value += i;
    leases[i].job = MakeJobId(1, i);
    held.push_back({.lease = leases[i].lease, .job = leases[i].job});
  }
  h.WorkerHello("w2", 50, {.credit = 1, .held = held});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w2"));
  for (const wire::Lease& lease : leases) h.Report("w2", lease);
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 3u);
}

// Dispatch resumes before all workers are back. A worker that has run a job since before the
// restart keeps it; the worker that got it meanwhile loses it.
TEST(CoreRecovery, AWorkerThatComesBackLateGoesOnWithItsJob) {
  ToBeRecovered h;
  h.Recover(Part::kLast, {0, 1, 2});
  h.WorkerHello("v", 51);
  h.Pass(seconds(1));
  const auto meanwhile = h.TakeLeases("v");
  ASSERT_EQ(meanwhile.size(), 1u);
  ASSERT_EQ(meanwhile[0].job, h.lease.job);
  h.WorkerHello("w2", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w2"));
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("v")->leases, std::vector{meanwhile[0].lease});
  EXPECT_NE(h.TakeLeases("v").at(0).job, h.lease.job);
  h.Report("v", meanwhile[0]);  // the report crosses the revocation
  h.Report("w2", h.lease);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(h.lease.job).worker, "worker 50");
  EXPECT_EQ(h.OutcomeOf(h.lease.job).attempts, 1u);
}

// The job may have ended the worker.
TEST(CoreRecovery, WhatAWorkerThatIsGoneHadMeanwhileCounts) {
  ToBeRecovered h;
  h.Recover(Part::kLast, {0, 1, 2});
  h.WorkerHello("v", 51);
  h.Pass(seconds(1));
  const auto meanwhile = h.TakeLeases("v").at(0);
  h.Heartbeat("v", {meanwhile.lease});
  h.Give(WorkerUnreachable{.peer = "v"});
  h.WorkerHello("w2", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w2"));
  h.Report("w2", h.lease);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(h.lease.job).attempts, 2u);
}

TEST(CoreRecovery, WhoComesTooLateDoesNot) {
  ToBeRecovered h;
  h.Recover(Part::kLast, {0, 1, 2});
  h.WorkerHello("v", 51);
  h.Pass(seconds(1));
  const auto meanwhile = h.TakeLeases("v").at(0);
  for (int i = 0; i < 19; ++i) {
    h.Heartbeat("v", {meanwhile.lease});
    h.Pass(seconds(1));
  }
  h.WorkerHello("w2", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w2")->leases, std::vector{h.lease.lease});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("v"));
}

// Two workers have leases of the same job from before the restart: one was lost, or gave it back
// and has not heard that this was read.
TEST(CoreRecovery, OfTwoThatComeBackWithOneJobTheOneThatGotItLaterHasIt) {
  ToBeRecovered h;
  h.Recover(Part::kLast, {0, 1, 2});
  h.WorkerHello("w2", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  const LeaseId earlier{h.lease.lease.value - 1};
  h.WorkerHello("v", 51, {.held = {{.lease = earlier, .job = h.lease.job}}});
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("v")->leases, std::vector{earlier});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w2"));
}

TEST(CoreRecovery, WhicheverOfThemComesBackFirst) {
  ToBeRecovered h;
  h.Recover(Part::kLast, {0, 1, 2});
  const LeaseId earlier{h.lease.lease.value - 1};
  h.WorkerHello("v", 51, {.held = {{.lease = earlier, .job = h.lease.job}}});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("v"));
  h.WorkerHello("w2", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("w2"));
  const auto revoked = h.TakeCommand<wire::Revoke>("v");
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->leases, std::vector{earlier});
  h.Report("w2", h.lease);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(h.lease.job).worker, "worker 50");
  EXPECT_EQ(h.OutcomeOf(h.lease.job).attempts, 1u);
}

// One worker failed the job since the restart; it now runs on another for a second verdict.
TEST(CoreRecovery, AJobThatWasJudgedSinceStaysWhereItIs) {
  ToBeRecovered h;
  h.Recover(Part::kLast, {0, 1, 2});
  h.WorkerHello("v", 51);
  h.Pass(seconds(1));
  const auto first = h.TakeLeases("v").at(0);
  ASSERT_EQ(first.job, h.lease.job);
  h.WorkerHello("u", 52);
  const auto other = h.TakeLeases("u").at(0);
  h.ReportFailure("v", first, FailureCode::kDeviceFault);
  h.Report("u", other);
  ASSERT_EQ(h.TakeLeases("u").at(0).job, h.lease.job);
  h.WorkerHello("w2", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w2")->leases, std::vector{h.lease.lease});
  EXPECT_FALSE(h.TakeCommand<wire::Revoke>("u"));
}

// The recovered rows are older and still show the job as unfinished.
TEST(CoreRecovery, WhatFinishedBeforeItsTurnIsNotEnteredAgain) {
  ToBeRecovered h;
  h.Recover(Part::kEarly, {0});
  h.WorkerHello("w2", 50, {.held = {{.lease = h.lease.lease, .job = h.lease.job}}});
  h.Report("w2", h.lease);
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(h.lease.job).evaluation.ok());
  h.Recover(Part::kLast, {0, 1, 2});
  EXPECT_FALSE(h.core->Has(h.lease.job));
  EXPECT_TRUE(h.core->Has(MakeJobId(1, 1)) && h.core->Has(MakeJobId(1, 2)));
}

TEST(CoreRecovery, WhatWasCancelledMeanwhileEndsWhenItIsRead) {
  ToBeRecovered h;
  h.ClientHello("c", 1);
  h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  h.Write();
  h.Recover(Part::kLast, {0, 1, 2});
  h.Write();
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, i))), FailureCode::kCancelled);
  }
}

TEST(CoreRecovery, WhatIsToComeIsNotExplainedAsOver) {
  ToBeRecovered h;
  h.ClientHello("c", 1);
  h.Recover(Part::kInOrder, {0});
  h.Ask("c", wire::ExplainJob{.job = MakeJobId(1, 1)});
  h.Ask("c", wire::ExplainJob{.job = MakeJobId(9, 0)});  // of another, finished batch
  h.Recover(Part::kLast, {1, 2});
  ASSERT_EQ(h.from_storage.size(), 2u);
  EXPECT_EQ(h.from_storage[0].job, Unknown::kMayBeToCome);
  EXPECT_EQ(h.from_storage[1].job, Unknown::kIsOver);
}

TEST(CoreRecovery, WhatIsToComeCountsAsUnfinished) {
  ToBeRecovered h;
  EXPECT_EQ(h.core->state().UnfinishedJobs(), 3u);
  h.Recover(Part::kInOrder, {0});
  EXPECT_EQ(h.core->state().UnfinishedJobs(), 3u);
  h.Recover(Part::kLast, {1, 2});
  EXPECT_EQ(h.core->state().UnfinishedJobs(), 3u);
}

}  // namespace
}  // namespace loopfleet::coordinator
