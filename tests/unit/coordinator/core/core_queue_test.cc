// Dispatch order and demands: priorities, clients, deadlines, labels, affinity.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "coordinator/core/core.h"
#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

// The jobs of these leases, in order.
std::vector<JobId> JobsOf(const std::vector<wire::Lease>& leases) {
  std::vector<JobId> jobs;
  for (const wire::Lease& lease : leases) jobs.push_back(lease.job);
  return jobs;
}

// A harness with a client "c".
struct Queue : Harness {
  explicit Queue(Limits some = {}) : Harness(some) { ClientHello("c", 1); }

  // Lets time pass while these workers send heartbeats with the leases that they hold.
  void PassHeard(Nanos time, const std::map<PeerId, std::vector<LeaseId>>& workers) {
    for (Nanos passed{0}; passed < time; passed += seconds(1)) {
      Pass(seconds(1));
      for (const auto& [peer, held] : workers) Heartbeat(peer, held);
    }
  }
  wire::JobExplanation Explain(JobId job) {
    const auto number = Ask("c", wire::ExplainJob{.job = job});
    const auto reply = TakeReply<wire::JobExplanation>("c", number);
    LF_CHECK(reply.has_value(), "job {} is not explained", job);
    return *reply;
  }
};

TEST(CoreQueue, PrioritiesOrderOneClientsJobs) {
  Queue h;
  h.Submit("c", {{.tree = 1}, {.tree = 2, .priority = 10}, {.tree = 3, .priority = -10}});
  h.Write();
  h.WorkerHello("w", 50, {.credit = 3});
  EXPECT_EQ(JobsOf(h.TakeLeases("w")),
            (std::vector{MakeJobId(1, 1), MakeJobId(1, 0), MakeJobId(1, 2)}));
}

TEST(CoreQueue, ClientsTakeTurns) {
  Queue h;
  h.ClientHello("d", 2);
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}, {.tree = 4}});
  h.Submit("d", {{.tree = 5}, {.tree = 6}});
  h.Write();
  h.WorkerHello("w", 50, {.credit = 6});
  EXPECT_EQ(JobsOf(h.TakeLeases("w")),
            (std::vector{MakeJobId(1, 0), MakeJobId(2, 0), MakeJobId(1, 1), MakeJobId(2, 1),
                         MakeJobId(1, 2), MakeJobId(1, 3)}));
}

TEST(CoreQueue, WhoAsksTheSameAsAnotherClientKeepsItsOwnTurn) {
  Queue h;
  h.ClientHello("d", 2);
  h.Submit("c", {{.tree = 1}, {.tree = 2}, {.tree = 3}, {.tree = 9}, {.tree = 9}});
  h.Submit("d", {{.tree = 9}});
  h.Write();
  h.WorkerHello("w", 50, {.credit = 2});
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(JobsOf(leases), (std::vector{MakeJobId(1, 0), MakeJobId(2, 0)}));
  EXPECT_EQ(h.Explain(MakeJobId(1, 3)).follows, MakeJobId(2, 0));  // not in the queue
  h.Report("w", leases[1]);
  h.Write();
  for (const JobId id : {MakeJobId(2, 0), MakeJobId(1, 3), MakeJobId(1, 4)}) {
    EXPECT_TRUE(h.OutcomeOf(id).evaluation.ok()) << id.index;
  }
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 3)).source, OutcomeSource::kCoalesced);
}

TEST(CoreQueue, WhoAsksTheSameWithAHigherPriorityGoesBefore) {
  Queue h;
  h.Submit("c", {{.tree = 1}, {.tree = 9}, {.tree = 9, .priority = 5}, {.tree = 9, .priority = 5}});
  h.Write();
  EXPECT_EQ(h.core->Queued(Placement::kCpu), 3U);  // the last follows an equal job
  h.WorkerHello("w", 50, {.credit = 1});
  const auto lease = h.TakeLeases("w").at(0);
  EXPECT_EQ(lease.job, MakeJobId(1, 2));
  EXPECT_EQ(h.core->Queued(Placement::kCpu), 1U);
  h.Pass(seconds(5));  // the worker is lost: its job returns, the others keep waiting
  EXPECT_EQ(h.core->Queued(Placement::kCpu), 2U);
  h.WorkerHello("x", 51, {.credit = 1});
  EXPECT_EQ(h.TakeLeases("x").at(0).job, lease.job);
}

TEST(CoreQueue, WhenTheFirstInLineGoesAnotherLeads) {
  Queue h;
  h.ClientHello("d", 2);
  h.Submit("c", {{.tree = 9, .deadline_s = 2}});
  h.Submit("d", {{.tree = 9}, {.tree = 9}});
  h.Write();
  h.Pass(seconds(3));
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kExpired);
  h.WorkerHello("w", 50);
  const auto lease = h.TakeLeases("w").at(0);
  EXPECT_EQ(lease.job, MakeJobId(2, 0));
  h.Report("w", lease);
  h.Write();
  EXPECT_TRUE(h.OutcomeOf(MakeJobId(2, 1)).evaluation.ok());
}

// ---- deadlines ----

TEST(CoreQueue, AQueuedJobExpiresAndIsNeverLeased) {
  Queue h;
  h.Submit("c", {{.tree = 1, .deadline_s = 2}, {.tree = 2}});
  h.Write();
  h.Pass(seconds(3));
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kExpired);
  h.WorkerHello("w", 50, {.credit = 3});
  EXPECT_EQ(JobsOf(h.TakeLeases("w")), std::vector{MakeJobId(1, 1)});
}

TEST(CoreQueue, AJobIsNotLeasedAtTheMomentOfItsDeadline) {
  Queue h;
  h.Submit("c", {{.tree = 1, .deadline_s = 2}});
  h.Write();
  h.now.instant += seconds(2);  // without a tick in between
  h.WorkerHello("w", 50);
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kExpired);
}

TEST(CoreQueue, ARunningJobIsRevokedAtItsDeadlineAndItsReportComesTooLate) {
  Queue h;
  h.WorkerHello("w", 50);
  h.Submit("c", {{.tree = 1, .deadline_s = 2}});
  h.Write();
  const auto lease = h.TakeLeases("w").at(0);
  h.PassHeard(seconds(3), {{"w", {lease.lease}}});
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases, std::vector{lease.lease});
  h.Report("w", lease);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(lease.job)), FailureCode::kExpired);
  EXPECT_EQ(h.OutcomeOf(lease.job).attempts, 1U);
}

TEST(CoreQueue, AReportAfterTheDeadlineIsTooLateThoughNobodyNoticedYet) {
  Queue h;
  h.WorkerHello("w", 50);
  h.Submit("c", {{.tree = 1, .deadline_s = 2}});
  h.Write();
  const auto lease = h.TakeLeases("w").at(0);
  h.now.instant += seconds(2);
  h.Report("w", lease);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(lease.job)), FailureCode::kExpired);
}

TEST(CoreQueue, WhoFollowsAnExpiredJobHasATurnOfItsOwn) {
  Queue h;
  h.Submit("c", {{.tree = 1, .deadline_s = 2}, {.tree = 1}});
  h.Write();
  h.Pass(seconds(3));
  h.WorkerHello("w", 50);
  EXPECT_EQ(JobsOf(h.TakeLeases("w")), std::vector{MakeJobId(1, 1)});
}

TEST(CoreQueue, TimeGoesOnWhileNoCoordinatorRuns) {
  Queue h;
  h.Submit("c", {{.tree = 1, .deadline_s = 60}, {.tree = 2, .deadline_s = 600}, {.tree = 3}});
  h.Write();
  h.now.instant += seconds(100);
  h.now.wall += seconds(100);
  h.Restart();
  h.ClientHello("c", 1);
  EXPECT_EQ(h.Explain(MakeJobId(1, 1)).deadline_left_ms, 500'000U);
  EXPECT_EQ(h.Explain(MakeJobId(1, 2)).deadline_left_ms, std::nullopt);
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 0))), FailureCode::kExpired);
}

TEST(CoreQueue, AClockThatWasSetBackGivesAJobItsTimeAgain) {
  Queue h;
  h.Submit("c", {{.tree = 1, .deadline_s = 60}});
  h.Write();
  h.now.wall -= seconds(1000);
  h.Restart();
  h.ClientHello("c", 1);
  EXPECT_EQ(h.Explain(MakeJobId(1, 0)).deadline_left_ms, 60'000U);
}

// ---- labels ----

TEST(CoreQueue, LabelsAreAllDemanded) {
  Queue h;
  h.WorkerHello("w", 50, {.credit = 9, .labels = {"quiet"}});
  h.WorkerHello("x", 51, {.credit = 9, .labels = {"big", "quiet"}});
  h.WorkerHello("y", 52, {.credit = 9, .isa = "avx512"});
  h.Submit("c", {{.tree = 1, .labels = {"quiet", "big"}},
                 {.tree = 2, .labels = {"isa=avx512"}},
                 {.tree = 3, .labels = {"quiet", "big"}}});
  h.Write();
  EXPECT_TRUE(h.TakeLeases("w").empty());
  EXPECT_EQ(JobsOf(h.TakeLeases("x")), (std::vector{MakeJobId(1, 0), MakeJobId(1, 2)}));
  EXPECT_EQ(JobsOf(h.TakeLeases("y")), std::vector{MakeJobId(1, 1)});
}

TEST(CoreQueue, AJobOfAnotherKindGoesToAWorkerThatRunsIt) {
  Queue h;
  h.WorkerHello("w", 50, {.credit = 9});
  h.Submit("c", {{.tree = 1, .benchmark = "probe://peaks-v0"}, {.tree = 2}});
  h.Write();
  EXPECT_EQ(JobsOf(h.TakeLeases("w")), std::vector{MakeJobId(1, 1)});
  h.WorkerHello("x", 51, {.credit = 9, .capabilities = {"kind=probe"}});
  const auto leases = h.TakeLeases("x");
  ASSERT_EQ(JobsOf(leases), std::vector{MakeJobId(1, 0)});
  Evaluation observing = h.GoodEvaluation(leases[0]);
  observing.verdict = Observed{.values = {{"clock_mhz", 3700.0}}};
  h.ReportEvaluation("x", leases[0], observing);
  h.Write();
  EXPECT_EQ(h.OutcomeOf(MakeJobId(1, 0)).evaluation.observed(), observing.observed());
}

TEST(CoreQueue, OneThatNobodyCanRunSaysWhatIsMissingAndWhoComesNearest) {
  Queue h;
  h.WorkerHello("w", 50, {.labels = {"quiet", "rack=7"}});
  h.WorkerHello("x", 51, {});
  h.Submit("c", {{.tree = 1, .labels = {"quite", "rack=7"}}});
  h.Write();
  h.PassHeard(seconds(31), {{"w", {}}, {"x", {}}});
  h.Write();
  const Failure& failure = h.OutcomeOf(MakeJobId(1, 0)).evaluation.failure();
  EXPECT_EQ(failure.code, FailureCode::kNoMatchingWorker);
  for (const char* part : {"'quite'", "worker 50", "nearest: quiet", "30 s"}) {
    EXPECT_NE(failure.message.find(part), std::string::npos) << part << ": " << failure.message;
  }
  EXPECT_EQ(failure.message.find("lacks the label 'rack=7'"), std::string::npos);
}

// It would pass over what it does not know, and measure something else.
TEST(CoreQueue, AJobThatUsesALaterFieldIsNotGivenToAnOlderWorker) {
  Harness h;
  h.ClientHello("c", 1);
  h.WorkerHello("old", 50, {.credit = 4, .version = {.major = 1, .minor = 0}});
  h.Submit("c", {{.tree = 1, .min_grade = Grade::kA}, {.tree = 2}});
  h.Write();
  const auto to_old = h.TakeLeases("old");
  ASSERT_EQ(to_old.size(), 1U);
  EXPECT_EQ(to_old[0].job, MakeJobId(1, 1));
  const auto number = h.Ask("c", wire::ExplainJob{.job = MakeJobId(1, 0)});
  const auto why = h.TakeReply<wire::JobExplanation>("c", number);
  ASSERT_TRUE(why);
  EXPECT_NE(why->reason.find("protocol 1.1"), std::string::npos) << why->reason;
  EXPECT_NE(why->reason.find("speaks protocol 1.0"), std::string::npos) << why->reason;
  ASSERT_EQ(why->workers.size(), 1U);
  EXPECT_EQ(why->workers[0].missing_labels, std::vector<std::string>{"protocol=1.1"});
  EXPECT_FALSE(why->workers[0].matches());
  h.WorkerHello("new", 51, {.credit = 4});
  const auto to_new = h.TakeLeases("new");
  ASSERT_EQ(to_new.size(), 1U);
  EXPECT_EQ(to_new[0].job, MakeJobId(1, 0));
}

TEST(CoreQueue, WhoLacksLabelsGetsNoAnswerOfOthers) {
  Queue h;
  h.WorkerHello("w", 50, {.credit = 9});
  h.WorkerHello("x", 51, {.credit = 9, .labels = {"quiet"}});
  h.Submit("c", {{.tree = 1}, {.tree = 1, .labels = {"quiet"}}});
  h.Write();
  EXPECT_EQ(JobsOf(h.TakeLeases("x")),
            std::vector{MakeJobId(1, 1)});  // it does not follow the first
}

TEST(CoreQueue, DifferentDemandsAreBounded) {
  Limits limits;
  limits.max_demands = 2;
  Queue h(limits);
  h.Submit("c", {{.tree = 1, .labels = {"a"}},
                 {.tree = 2, .labels = {"b"}},
                 {.tree = 3, .labels = {"c"}},
                 {.tree = 4, .labels = {"b"}}});
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 2))), FailureCode::kQuotaExceeded);
  EXPECT_FALSE(h.disk.outcomes.contains(MakeJobId(1, 3)));
  EXPECT_FALSE(h.disk.outcomes.contains(MakeJobId(1, 0)));
}

TEST(CoreQueue, TheDemandsOfOneClientKeepNoOtherOut) {
  Limits limits;
  limits.max_demands = 4;
  Queue h(limits);
  h.ClientHello("d", 2);
  h.Submit("c", {{.tree = 1, .labels = {"a"}},
                 {.tree = 2, .labels = {"b"}},
                 {.tree = 3, .labels = {"c"}},
                 {.tree = 4, .labels = {"d"}},
                 {.tree = 5, .labels = {"e"}}});
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 1U);
  h.Submit("d", {{.tree = 6}, {.tree = 7, .labels = {"f"}}, {.tree = 8, .labels = {"g"}}});
  h.Write();
  EXPECT_FALSE(h.disk.outcomes.contains(MakeJobId(2, 0)));
  EXPECT_FALSE(h.disk.outcomes.contains(MakeJobId(2, 1)));  // half of them are its share
  const Failure& third = h.OutcomeOf(MakeJobId(2, 2)).evaluation.failure();
  EXPECT_EQ(third.code, FailureCode::kQuotaExceeded);
  EXPECT_NE(third.message.find("2 combinations"), std::string::npos) << third.message;
  h.Submit("c", {{.tree = 9, .labels = {"h"}}});  // it has more than its share by now
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(3, 0))), FailureCode::kQuotaExceeded);
  h.Submit("d", {{.tree = 10, .labels = {"a"}}});  // waits with one that is there
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 3U);
}

TEST(CoreQueue, DemandsOfAnyNumberOfClientsAreBounded) {
  Limits limits;
  limits.max_demands = 2;
  Queue h(limits);
  for (int client = 0; client < 40; ++client) {
    const std::string peer = fmt::format("d{}", client);
    h.ClientHello(peer, static_cast<std::uint8_t>(2 + client));
    h.Submit(peer, {{.tree = static_cast<std::uint8_t>(1 + client), .labels = {peer}}});
    h.Write();
  }
  EXPECT_EQ(h.core->state().ready.demands().open, 16U);  // eight times as many
  EXPECT_EQ(h.disk.outcomes.size(), 24U);
}

// The bound includes demands that an affinity binds to one worker, which are examined for each job
// that the worker gets.
TEST(CoreQueue, DifferentDemandsOfOneWorkerAreBounded) {
  Limits limits;
  limits.max_demands = 2;  // and four per worker
  Queue h(limits);
  const std::vector<std::string> labels{"a", "b", "c", "d", "e", "f", "g", "h"};
  h.WorkerHello("w", 50, {.labels = labels});
  h.Submit("c", {{.tree = 1, .affinity = "episode"}});
  h.Write();
  ASSERT_EQ(h.TakeLeases("w").size(), 1U);
  std::vector<JobSetup> jobs;
  for (const std::string& label : labels) {
    jobs.push_back({.tree = static_cast<std::uint8_t>(10 + jobs.size()),
                    .labels = {label},
                    .affinity = "episode"});
  }
  h.Submit("c", jobs);
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 2U);
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(2, 7))), FailureCode::kQuotaExceeded);
  h.ClientHello("d", 2);
  h.Submit("d", {{.tree = 30, .threads = 2, .affinity = "episode"}});
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 2U);  // another client has its share
}

// Whatever their clients, demands and priorities.
TEST(CoreQueue, TheOldestQueuedJobIsKnown) {
  Queue h;
  const auto oldest = [&] { return h.core->state().queued_since.Oldest(); };
  EXPECT_FALSE(oldest());
  const Instant first = h.now.instant;
  h.Submit("c", {{.tree = 1, .priority = 5}, {.tree = 2, .labels = {"quiet"}}});
  h.Write();
  h.Pass(seconds(1));
  const Instant second = h.now.instant;
  h.Submit("c", {{.tree = 3, .priority = 9, .labels = {"loud"}}});
  h.Write();
  EXPECT_EQ(oldest(), first);
  h.WorkerHello("w", 50, {.credit = 2, .labels = {"loud"}});
  h.TakeLeases("w");
  EXPECT_EQ(oldest(), first);
  h.WorkerHello("x", 51, {.labels = {"quiet"}});
  h.TakeLeases("x");
  EXPECT_FALSE(oldest());
  h.Say("w", wire::Goodbye{});  // its jobs return, with the age that they had
  EXPECT_EQ(oldest(), first);
  h.Ask("c", wire::CancelBatch{.batch = BatchId{1}});
  EXPECT_EQ(oldest(), second);
}

// ---- affinity ----

TEST(CoreQueue, JobsOfOneAffinityRunOnOneWorker) {
  Queue h;
  h.WorkerHello("w", 50);
  h.WorkerHello("x", 51, {.credit = 9});
  h.Submit("c", {{.tree = 1, .affinity = "episode"},
                 {.tree = 2, .affinity = "episode"},
                 {.tree = 3, .affinity = "episode"}});
  h.Write();
  const auto first = h.TakeLeases("w");
  ASSERT_EQ(JobsOf(first), std::vector{MakeJobId(1, 0)});
  EXPECT_TRUE(h.TakeLeases("x").empty());  // free, but not bound to the affinity
  h.Report("w", first[0]);
  h.Write();
  EXPECT_EQ(JobsOf(h.TakeLeases("w")), std::vector{MakeJobId(1, 1)});
  h.Submit("c", {{.tree = 9}});
  h.Write();
  EXPECT_EQ(JobsOf(h.TakeLeases("x")), std::vector{MakeJobId(2, 0)});
}

TEST(CoreQueue, AnAffinityMovesOnceItsWorkerIsGone) {
  Queue h;
  h.WorkerHello("w", 50);
  h.WorkerHello("x", 51, {.credit = 9});
  h.Submit("c", {{.tree = 1, .affinity = "e"}, {.tree = 2, .affinity = "e"}});
  h.Write();
  const auto first = h.TakeLeases("w");
  ASSERT_EQ(JobsOf(first), std::vector{MakeJobId(1, 0)});
  h.PassHeard(seconds(5), {{"x", {}}});  // "w" is lost
  // A job that was lost with a worker runs alone.
  const auto alone = h.TakeLeases("x");
  ASSERT_EQ(JobsOf(alone), std::vector{MakeJobId(1, 0)});
  h.Report("x", alone[0]);
  EXPECT_EQ(JobsOf(h.TakeLeases("x")), std::vector{MakeJobId(1, 1)});
  // The lost worker's lease is revoked: its affinity has moved.
  h.WorkerHello("w", 50, {.held = {{first[0].lease, first[0].job}}});
  EXPECT_EQ(h.TakeCommand<wire::Revoke>("w")->leases, std::vector{first[0].lease});
}

TEST(CoreQueue, AnAffinityMovesFromADrainingWorker) {
  Queue h;
  h.WorkerHello("w", 50);
  h.Submit("c", {{.tree = 1, .affinity = "e"}, {.tree = 2, .affinity = "e"}});
  h.Write();
  const auto first = h.TakeLeases("w");
  h.WorkerHello("x", 51, {.credit = 9});
  h.Heartbeat("w", {first[0].lease}, wire::DrainState::kDraining);
  h.Pass(milliseconds(200));
  EXPECT_EQ(JobsOf(h.TakeLeases("x")), std::vector{MakeJobId(1, 1)});
}

TEST(CoreQueue, AnAffinityStaysWithTheWorkerThatComesBackAfterARestart) {
  Queue h;
  h.WorkerHello("w", 50);
  h.Submit("c", {{.tree = 1, .affinity = "e"}, {.tree = 2, .affinity = "e"}});
  h.Write();
  const auto first = h.TakeLeases("w").at(0);
  h.Restart();
  h.WorkerHello("x", 51, {.credit = 9});
  h.WorkerHello("w", 50, {.held = {{first.lease, first.job}}});
  h.Pass(seconds(2));
  EXPECT_TRUE(h.TakeLeases("x").empty());
  h.Report("w", first);
  h.Write();
  EXPECT_EQ(JobsOf(h.TakeLeases("w")), std::vector{MakeJobId(1, 1)});
}

// A tick examines only demands whose set of workers changed since the last tick.
TEST(CoreQueue, WhoIsThereForADemandIsLookedAtWhenSomethingChanges) {
  constexpr std::uint8_t kDemands = 40;
  Queue h;
  h.WorkerHello("w", 50);
  std::vector<JobSetup> wishes;
  for (std::uint8_t i = 0; i < kDemands; ++i) {
    wishes.push_back({.tree = i, .labels = {fmt::format("label {}", i)}});
  }
  h.Submit("c", wishes);
  h.Write();
  h.Pass(milliseconds(100));
  const auto& unserved = h.core->state().unschedulable;
  EXPECT_EQ(unserved.looks(), kDemands);
  h.PassHeard(seconds(20), {{"w", {}}});
  EXPECT_EQ(unserved.looks(), kDemands);
  h.WorkerHello("x", 51, {.credit = 9, .labels = {"label 7"}});
  EXPECT_EQ(JobsOf(h.TakeLeases("x")), std::vector{MakeJobId(1, 7)});
  h.Pass(milliseconds(100));
  h.Say("x", wire::Goodbye{});  // the job returns and has 30 s from now
  h.Pass(milliseconds(100));
  EXPECT_LE(unserved.looks(), 3U * kDemands);
  h.PassHeard(seconds(12), {{"w", {}}});
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), kDemands - 1U);
  EXPECT_LE(unserved.looks(), 3U * kDemands);
  h.PassHeard(seconds(19), {{"w", {}}});
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(1, 7))), FailureCode::kNoMatchingWorker);
}

TEST(CoreQueue, AnAffinityWhoseWorkerLacksALabelSaysSo) {
  Queue h;
  h.WorkerHello("w", 50);
  h.WorkerHello("x", 51, {.credit = 9, .labels = {"big"}});
  h.Submit("c", {{.tree = 1, .affinity = "e"}});
  h.Write();
  const auto first = h.TakeLeases("w").at(0);
  h.Submit("c", {{.tree = 2, .labels = {"big"}, .affinity = "e"}});
  h.Write();
  h.PassHeard(seconds(32), {{"w", {first.lease}}, {"x", {}}});
  h.Write();
  EXPECT_EQ(CodeOf(h.OutcomeOf(MakeJobId(2, 0))), FailureCode::kNoMatchingWorker);
}

TEST(CoreQueue, AffinitiesAreBounded) {
  Limits limits;
  limits.max_affinities = 2;
  Queue h(limits);
  h.WorkerHello("w", 50, {.credit = 9});
  for (const char* affinity : {"a", "b", "c", "d"}) {
    h.Submit("c", {{.tree = 1, .affinity = affinity}});
    h.Write();
    h.Report("w", h.TakeLeases("w").at(0));
    h.Write();
    EXPECT_LE(h.core->state().affinities.size(), 2U);
  }
}

// ---- why is it waiting? ----

TEST(CoreQueue, ExplainsWhatAQueuedJobWaitsFor) {
  Queue h;
  h.ClientHello("d", 2);
  h.WorkerHello("w", 50, {.labels = {"quiet"}});
  h.WorkerHello("x", 51, {});
  h.Submit("d", {{.tree = 9, .labels = {"quiet"}}, {.tree = 8, .labels = {"quiet"}}});
  h.Write();
  h.Submit("c", {{.tree = 1, .labels = {"quiet"}},
                 {.tree = 2, .priority = 5, .labels = {"quiet"}, .deadline_s = 100}});
  h.Write();
  h.Pass(seconds(1));
  const auto low = h.Explain(MakeJobId(2, 0));
  EXPECT_EQ(low.state, wire::JobState::kQueued);
  EXPECT_EQ(low.ahead_own, 1U);
  EXPECT_EQ(low.other_clients, 1U);
  EXPECT_EQ(low.ahead_others, 1U);
  EXPECT_EQ(low.waited_ms, 1000U);
  ASSERT_EQ(low.workers.size(), 2U);
  EXPECT_TRUE(low.workers[0].matches());
  EXPECT_EQ(low.workers[0].leased_jobs, 1U);
  EXPECT_EQ(low.workers[1].missing_labels, std::vector<std::string>{"quiet"});
  EXPECT_NE(low.reason.find("all of them have as many jobs as they take"), std::string::npos)
      << low.reason;
  const auto high = h.Explain(MakeJobId(2, 1));
  EXPECT_EQ(high.ahead_own, 0U);
  EXPECT_EQ(high.priority, 5);
  EXPECT_EQ(high.deadline_left_ms, 99'000U);
}

TEST(CoreQueue, ExplainsThatNobodyCanRunIt) {
  Queue h;
  h.WorkerHello("w", 50, {});
  h.Submit("c", {{.tree = 1, .placement = Placement::kCuda}});
  h.Write();
  h.PassHeard(seconds(10), {{"w", {}}});
  const auto explanation = h.Explain(MakeJobId(1, 0));
  EXPECT_EQ(explanation.unserved_ms, 10'000U);
  EXPECT_EQ(explanation.unserved_limit_ms, 30'000U);
  ASSERT_EQ(explanation.workers.size(), 1U);
  EXPECT_TRUE(explanation.workers[0].other_device);
  EXPECT_NE(explanation.reason.find("NO_MATCHING_WORKER in 20 s"), std::string::npos)
      << explanation.reason;
}

TEST(CoreQueue, ExplainsWhoHasAJobAndWhoItFollows) {
  Queue h;
  h.WorkerHello("w", 50);
  h.Submit("c", {{.tree = 1, .affinity = "e"}, {.tree = 1, .affinity = "e"}});
  h.Write();
  h.Pass(seconds(2));
  const auto leased = h.Explain(MakeJobId(1, 0));
  EXPECT_EQ(leased.state, wire::JobState::kLeased);
  EXPECT_EQ(leased.worker, "worker 50");
  EXPECT_EQ(leased.leased_ms, 2000U);
  EXPECT_EQ(leased.attempts, 1U);
  EXPECT_EQ(leased.affinity_worker, "worker 50");
  EXPECT_EQ(h.Explain(MakeJobId(1, 1)).follows, MakeJobId(1, 0));
}

TEST(CoreQueue, WhatIsOverIsExplainedFromStorage) {
  Queue h;
  const std::size_t before = h.from_storage.size();
  h.Ask("c", wire::ExplainJob{.job = MakeJobId(9, 9)});
  EXPECT_EQ(h.from_storage.size(), before + 1);
}

}  // namespace
}  // namespace loopfleet::coordinator
