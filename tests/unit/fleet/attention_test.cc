#include "common/fleet/attention.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

namespace loopfleet {
namespace {

using namespace std::chrono_literals;
using wire::Severity;
using wire::WorkerState;

wire::WorkerInfo Worker(std::string name, WorkerState state = WorkerState::kReady) {
  return {.name = std::move(name), .state = state};
}

wire::WorkerInfo Drained(std::string name, std::string reason) {
  wire::WorkerInfo worker = Worker(std::move(name), WorkerState::kDraining);
  worker.drain = wire::Drain{.target = worker.name,
                             .reason = std::move(reason),
                             .by = "ada",
                             .since = WallTime(1'700'000'000s)};
  return worker;
}

// The only item, which must be of this kind.
wire::Attention Only(const FleetModel& fleet, std::string_view kind) {
  const wire::FleetHealth health = HealthOf(fleet);
  EXPECT_EQ(health.attention.size(), 1U);
  if (health.attention.empty()) return {};
  EXPECT_EQ(health.attention[0].kind, kind);
  return health.attention[0];
}

TEST(AttentionTable, HasEachKindOnceInItsOrder) {
  std::set<std::string_view> names;
  std::size_t place = 0;
  for (const AttentionInfo& info : AttentionTable()) {
    EXPECT_EQ(static_cast<std::size_t>(info.kind), place++);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(FindAttention(info.name), &info);
  }
  EXPECT_EQ(FindAttention("of_a_newer_version"), nullptr);
}

TEST(HealthOf, AFleetAtWorkNeedsNobody) {
  const wire::FleetHealth health =
      HealthOf({.workers = {Worker("a"), Worker("b")}, .queued = {5, 0, 0}, .running_batches = 1});
  EXPECT_TRUE(health.attention.empty());
  EXPECT_EQ(health.level(), Severity::kNotice);
  EXPECT_EQ(health.sentence, "2 of 2 workers ready, 1 batch running; nothing needs you.");
}

TEST(HealthOf, ADrainIsShownAndNeedsNobody) {
  const wire::FleetHealth health = HealthOf({.workers = {Worker("a"), Drained("b", "new fan")}});
  EXPECT_EQ(health.level(), Severity::kNotice);
  EXPECT_EQ(health.sentence, "1 of 2 workers ready, 0 batches running; nothing needs you.");
  ASSERT_EQ(health.attention.size(), 1U);
  EXPECT_EQ(health.attention[0].sentence,
            "1 worker is drained: b (by ada since 2023-11-14 22:13 UTC: new fan).");
}

TEST(HealthOf, AWorkerThatLeavesByItselfNeedsNobody) {
  EXPECT_TRUE(
      HealthOf({.workers = {Worker("a"), Worker("b", WorkerState::kDraining)}}).attention.empty());
}

TEST(HealthOf, TheWorstComesFirst) {
  FleetModel fleet{.workers = {Worker("a"), Worker("b", WorkerState::kLost), Drained("c", "")},
                   .queued = {2, 0, 0}};
  EXPECT_EQ(HealthOf(fleet).sentence, "1 worker is lost: b.");
  fleet.unserved_jobs = 2;
  fleet.unserved_reasons = {"no worker for it (label 'x') is there"};
  EXPECT_EQ(HealthOf(fleet).sentence, "2 jobs wait: no worker for it (label 'x') is there.");
  EXPECT_EQ(HealthOf(fleet).level(), Severity::kWarning);
  fleet.storage_trouble = ErrorKind::kFull;
  EXPECT_EQ(HealthOf(fleet).sentence, "The database has no room: no jobs are accepted.");
  EXPECT_EQ(HealthOf(fleet).level(), Severity::kProblem);
  const wire::FleetHealth health = HealthOf(fleet, kStuckAfter + 1s);
  EXPECT_EQ(health.sentence, "The event loop has not turned for 6.0 s.");
  EXPECT_EQ(health.attention.size(), 5U);
  EXPECT_EQ(health.attention.back().kind, "workers_drained");
}

TEST(HealthOf, NamesAFewOfManyWorkers) {
  FleetModel fleet{.workers = {Worker("a")}};
  for (const char* name : {"b", "c", "d", "e", "f"}) {
    fleet.workers.push_back(Worker(name, WorkerState::kLost));
  }
  const wire::Attention item = Only(fleet, "workers_lost");
  EXPECT_EQ(item.sentence, "5 workers are lost: b, c, d, and 2 more.");
  EXPECT_EQ(item.count, 5U);
}

TEST(HealthOf, WithoutAReadyWorker) {
  EXPECT_EQ(Only({}, "no_worker_ready").sentence, "No worker is connected.");
  EXPECT_EQ(HealthOf({}).level(), Severity::kWarning);
  EXPECT_EQ(Only({.queued = {1, 1, 1}}, "no_worker_ready").sentence,
            "3 jobs wait and no worker is ready.");
  EXPECT_EQ(HealthOf({.queued = {1, 1, 1}}).level(), Severity::kProblem);
  FleetModel fleet{.workers = {Drained("a", "")}};
  EXPECT_EQ(HealthOf(fleet).sentence, "No worker is ready; no job waits.");
  fleet.workers.push_back(Worker("b", WorkerState::kQuarantined));
  EXPECT_EQ(HealthOf(fleet).sentence,
            "No worker is ready: quarantined ones get the jobs, and their figures are in doubt.");
  EXPECT_EQ(HealthOf(fleet).level(), Severity::kProblem);
}

TEST(HealthOf, JobsThatWaitWithoutAnyWorkerAreSaidOnce) {
  FleetModel fleet{.queued = {3, 0, 0},
                   .unserved_jobs = 3,
                   .unserved_reasons = {
                       "no worker for it (a CPU worker) is there; no worker is connected at all"}};
  EXPECT_EQ(Only(fleet, "no_worker_ready").sentence, "3 jobs wait and no worker is ready.");
  fleet.workers = {Worker("a", WorkerState::kLost)};
  EXPECT_EQ(HealthOf(fleet).attention.size(), 2U);  // that, and that it is lost
}

TEST(HealthOf, AWorkerWhoseFiguresAreCoarseNeedsAttention) {
  FleetModel fleet{.workers = {Worker("a"), Worker("b")}};
  fleet.workers[1].recent_figures = 32;
  fleet.workers[1].recent_imprecise = 23;
  EXPECT_TRUE(HealthOf(fleet).attention.empty());
  fleet.workers[1].recent_imprecise = 24;
  const std::string why =
      "24 of its last 32 figures have grade C or D: `loopfleet doctor` on its host";
  EXPECT_EQ(Only(fleet, "workers_imprecise").sentence, "1 worker is imprecise: b (" + why + ").");
  EXPECT_EQ(HealthOf(fleet).level(), Severity::kWarning);
  EXPECT_EQ(WhyLimited(fleet.workers[1]), "imprecise: " + why);
  fleet.workers[1].recent_figures = fleet.workers[1].recent_imprecise = 19;  // too few to judge
  EXPECT_TRUE(HealthOf(fleet).attention.empty());
}

TEST(HealthOf, ManyFailuresAreAWarningAndFewJobsAreNotJudged) {
  FleetModel fleet{.workers = {Worker("a")}, .recently_judged = 30, .recently_failed = 10};
  EXPECT_EQ(Only(fleet, "many_failures").sentence, "10 of the last 5 minutes' 30 jobs failed.");
  fleet.recently_failed = 6;
  EXPECT_TRUE(HealthOf(fleet).attention.empty());
  fleet = {.workers = {Worker("a")}, .recently_judged = 19, .recently_failed = 19};
  EXPECT_TRUE(HealthOf(fleet).attention.empty());
}

TEST(HealthOf, ACoordinatorThatStops) {
  EXPECT_EQ(Only({.is_stopping = true, .workers = {Worker("a")}}, "coordinator_stopping").severity,
            Severity::kWarning);
}

TEST(WhyLimited, SaysWhatHoldsAWorkerBack) {
  EXPECT_EQ(WhyLimited(Worker("a")), "");
  EXPECT_EQ(WhyLimited(Worker("a", WorkerState::kLost)), "");
  EXPECT_EQ(WhyLimited(Worker("a", WorkerState::kDraining)), "going down");
  EXPECT_EQ(WhyLimited(Drained("a", "")), "drained by ada since 2023-11-14 22:13 UTC");
  EXPECT_EQ(WhyLimited(Drained("a", "new fan")),
            "drained by ada since 2023-11-14 22:13 UTC: new fan");
  wire::WorkerInfo worker = Worker("a", WorkerState::kQuarantined);
  worker.quarantine = "its canaries drift";
  worker.outdated = "it speaks protocol 1.0, the coordinator 1.1";
  EXPECT_EQ(WhyLimited(worker), "in quarantine: its canaries drift");  // the first that applies
  worker.state = WorkerState::kReady;
  EXPECT_EQ(WhyLimited(worker), "outdated: it speaks protocol 1.0, the coordinator 1.1");
}

}  // namespace
}  // namespace loopfleet
