#include "monitoring/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "monitoring/metric_table.h"

namespace loopfleet::monitoring {
namespace {

using namespace std::chrono_literals;

const CoordinatorLabels kCoordinatorLabels = {
    .outcomes = {"ok", "INVALID_ACTION", "WRONG_OUTPUT"},
    .sources = {"measured", "stored", "coalesced"},
    .devices = {"cpu", "cuda", "any"},
    .worker_states = {"ready", "draining", "lost"},
    .attention = {"workers_lost"},
    .stages = {"queue", "replay", "compile", "verify", "measure", "store"},
    .refusals = {"BUSY", "UNSUPPORTED"},
    .retries = {"UNSTABLE_TIMING"},
    .quarantines = {"memory_canary"},
    .events = {"submission", "tick"},
};
const WorkerLabels kWorkerLabels = {
    .outcomes = {"ok", "RUN_CRASH"},
    .stages = {"replay", "compile", "verify", "measure"},
    .children = {"compiler", "executor"},
    .restart_reasons = {"crash", "timeout"},
    .activities = {"idle", "measure", "lost"},
    .grades = {"A", "B"},
};

// The value of a series, named as in the text format; fails the test if it is missing.
double ValueOf(const Registry& registry, const std::string& series) {
  std::istringstream lines(registry.ToText());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  }
  ADD_FAILURE() << "no series " << series << " in\n" << registry.ToText();
  return -1;
}

std::set<std::string> FamilyNames(const Registry& registry) {
  std::set<std::string> names;
  std::istringstream lines(registry.ToText());
  const std::string prefix = "# TYPE ";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(prefix)) continue;
    names.insert(line.substr(prefix.size(), line.find(' ', prefix.size()) - prefix.size()));
  }
  return names;
}

std::set<std::string> TableNames(MetricHome home) {
  std::set<std::string> names;
  for (const MetricSpec& spec : MetricTable()) {
    if (spec.home == home || spec.home == MetricHome::kBoth) names.emplace(spec.name);
  }
  return names;
}

TEST(Metrics, EachDaemonShowsTheTablesMetricsFromTheStart) {
  Registry coordinator;
  RegisterBuildInfo(coordinator, {.component = "coordinator", .version = "0.1.0"});
  RegisterProcess(coordinator);
  CoordinatorMetrics coordinator_metrics(coordinator, kCoordinatorLabels);
  EXPECT_EQ(FamilyNames(coordinator), TableNames(MetricHome::kCoordinator));

  Registry worker;
  RegisterBuildInfo(worker, {.component = "worker", .version = "0.1.0"});
  RegisterProcess(worker);
  WorkerMetrics worker_metrics(worker, kWorkerLabels);
  EXPECT_EQ(FamilyNames(worker), TableNames(MetricHome::kWorker));
}

TEST(CoordinatorMetrics, CountsBlobs) {
  Registry registry;
  CoordinatorMetrics metrics(registry, kCoordinatorLabels);
  metrics.BlobReceived(5);
  metrics.BlobReceived(6);
  metrics.BlobSent(7);
  metrics.SetBlobs({.blobs = 3, .bytes = 8'192, .removed = 1, .damaged = 0});
  metrics.SetBlobs({.blobs = 2, .bytes = 4'096, .removed = 3, .damaged = 1});
  EXPECT_EQ(ValueOf(registry, "loopfleet_blob_received_bytes_total"), 11);
  EXPECT_EQ(ValueOf(registry, "loopfleet_blob_sent_bytes_total"), 7);
  EXPECT_EQ(ValueOf(registry, "loopfleet_blobs"), 2);
  EXPECT_EQ(ValueOf(registry, "loopfleet_blob_kept_bytes"), 4'096);
  EXPECT_EQ(ValueOf(registry, "loopfleet_blobs_removed_total"), 3);
  EXPECT_EQ(ValueOf(registry, "loopfleet_blobs_damaged_total"), 1);
}

TEST(CoordinatorMetrics, CountsJobs) {
  Registry registry;
  CoordinatorMetrics metrics(registry, kCoordinatorLabels);
  EXPECT_EQ(ValueOf(registry, "loopfleet_jobs_completed_total{outcome=\"WRONG_OUTPUT\"}"), 0);
  metrics.JobsSubmitted(40);
  metrics.JobsSubmitted(2);
  metrics.JobCompleted("ok");
  metrics.JobCompleted("ok");
  metrics.JobCompleted("INVALID_ACTION");
  metrics.OutcomeFrom("stored");
  metrics.Refused("BUSY");
  metrics.JobRetried("UNSTABLE_TIMING");
  metrics.WorkersDisagreed();
  metrics.MalformedMessage();
  metrics.MessageUnsent();
  EXPECT_EQ(ValueOf(registry, "loopfleet_jobs_submitted_total"), 42);
  EXPECT_EQ(ValueOf(registry, "loopfleet_jobs_completed_total{outcome=\"ok\"}"), 2);
  EXPECT_EQ(ValueOf(registry, "loopfleet_jobs_completed_total{outcome=\"INVALID_ACTION\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_outcomes_total{source=\"stored\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_outcomes_total{source=\"measured\"}"), 0);
  EXPECT_EQ(ValueOf(registry, "loopfleet_refusals_total{code=\"BUSY\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_retries_total{code=\"UNSTABLE_TIMING\"}"), 1);
  metrics.Quarantined("memory_canary");
  EXPECT_EQ(ValueOf(registry, "loopfleet_quarantines_total{cause=\"memory_canary\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_disagreements_total"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_malformed_messages_total"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_unsent_messages_total"), 1);
}

TEST(CoordinatorMetrics, ShowsTheStateOfTheFleet) {
  Registry registry;
  CoordinatorMetrics metrics(registry, kCoordinatorLabels);
  metrics.SetQueued("cpu", 7);
  metrics.SetQueued("abacus", 9);
  metrics.SetLeased(3);
  metrics.SetWorkers("ready", 2);
  metrics.SetWorkers("lost", 1);
  metrics.SetWorkers("ready", 5);
  EXPECT_EQ(ValueOf(registry, "loopfleet_queue_jobs{device=\"cpu\"}"), 7);
  EXPECT_EQ(ValueOf(registry, "loopfleet_queue_jobs{device=\"cuda\"}"), 0);
  EXPECT_EQ(registry.ToText().find("abacus"), std::string::npos);
  EXPECT_EQ(ValueOf(registry, "loopfleet_leased_jobs"), 3);
  EXPECT_EQ(ValueOf(registry, "loopfleet_workers{state=\"ready\"}"), 5);
  EXPECT_EQ(ValueOf(registry, "loopfleet_workers{state=\"draining\"}"), 0);
  EXPECT_EQ(ValueOf(registry, "loopfleet_workers{state=\"lost\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_needs_attention{kind=\"workers_lost\"}"), 0);
  metrics.SetAttention("workers_lost", 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_needs_attention{kind=\"workers_lost\"}"), 1);
}

TEST(CoordinatorMetrics, ManyThatTookAsLongAreAsManySingleOnes) {
  Registry registry;
  CoordinatorMetrics metrics(registry, kCoordinatorLabels);
  for (const auto took : {1us, 2999us, 3000us, 3001us, 1'000'000'000us}) {
    metrics.StageTook("compile", took, 2);
    for (int i = 0; i < 2; ++i) metrics.StageTook("queue", took);
  }
  std::istringstream lines(registry.ToText());
  std::set<std::string> compile;
  std::set<std::string> queue;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("loopfleet_job_stage_duration_seconds")) continue;
    if (line.find("_sum") != std::string::npos) continue;  // added in another order
    for (const auto& [label, found] :
         {std::pair("compile", &compile), std::pair("queue", &queue)}) {
      const auto at = line.find(label);
      if (at != std::string::npos) found->insert(line.erase(at, std::strlen(label)));
    }
  }
  EXPECT_GT(compile.size(), 10u);
  EXPECT_EQ(compile, queue);
}

TEST(CoordinatorMetrics, ObservesDurationsInSeconds) {
  Registry registry;
  CoordinatorMetrics metrics(registry, kCoordinatorLabels);
  metrics.StageTook("compile", 2ms);
  metrics.StageTook("compile", 40ms);
  metrics.Committed(700us, 250);
  metrics.LookedUp(LookupResult::kHit);
  metrics.LookedUp(LookupResult::kMiss, 8);
  metrics.LookedUp(LookupResult::kShared, 3);
  const std::string stage = "loopfleet_job_stage_duration_seconds";
  EXPECT_EQ(ValueOf(registry, stage + "_count{stage=\"compile\"}"), 2);
  EXPECT_NEAR(ValueOf(registry, stage + "_sum{stage=\"compile\"}"), 0.042, 1e-9);
  EXPECT_EQ(ValueOf(registry, stage + "_bucket{stage=\"compile\",le=\"0.003\"}"), 1);
  EXPECT_EQ(ValueOf(registry, stage + "_count{stage=\"queue\"}"), 0);
  EXPECT_NEAR(ValueOf(registry, "loopfleet_store_commit_duration_seconds_sum"), 0.0007, 1e-12);
  EXPECT_EQ(ValueOf(registry, "loopfleet_store_commit_rows_sum"), 250);
  EXPECT_EQ(ValueOf(registry, "loopfleet_store_lookups_total{result=\"hit\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_store_lookups_total{result=\"miss\"}"), 8);
  EXPECT_EQ(ValueOf(registry, "loopfleet_store_lookups_total{result=\"shared\"}"), 3);
}

TEST(WorkerMetrics, CountsAttemptsAndRestarts) {
  Registry registry;
  WorkerMetrics metrics(registry, kWorkerLabels);
  metrics.JobCompleted("RUN_CRASH");
  metrics.StageTook("measure", 10ms);
  metrics.StageTook("queue", 10ms);  // not a stage of the worker
  metrics.ChildRestarted("executor", "crash");
  metrics.ChildRestarted("executor", "a reason nobody declared");
  metrics.Connected();
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_jobs_completed_total{outcome=\"RUN_CRASH\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_stage_duration_seconds_count{stage=\"measure\"}"),
            1);
  EXPECT_EQ(registry.ToText().find("stage=\"queue\""), std::string::npos);
  const std::string restarts = "loopfleet_worker_child_restarts_total";
  EXPECT_EQ(ValueOf(registry, restarts + "{child=\"executor\",reason=\"crash\"}"), 1);
  EXPECT_EQ(ValueOf(registry, restarts + "{child=\"executor\",reason=\"other\"}"), 1);
  EXPECT_EQ(ValueOf(registry, restarts + "{child=\"compiler\",reason=\"crash\"}"), 0);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_connected"), 1);
  metrics.Disconnected();
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_connected"), 0);
}

TEST(CoordinatorMetrics, ShowsHowLongTheOldestJobWaitsAndWhatTheDatabaseTakes) {
  Registry registry;
  CoordinatorMetrics metrics(registry, kCoordinatorLabels);
  const std::string oldest = "loopfleet_queue_oldest_job_timestamp_seconds";
  EXPECT_TRUE(std::isnan(ValueOf(registry, oldest)));
  metrics.SetOldestQueued(1'700'000'000s);
  EXPECT_EQ(ValueOf(registry, oldest), 1'700'000'000);
  metrics.SetOldestQueued(std::nullopt);
  EXPECT_TRUE(std::isnan(ValueOf(registry, oldest)));
  EXPECT_EQ(ValueOf(registry, "loopfleet_waiting_request_bytes"), 0);
  metrics.SetWaitingRequests(1 << 20);
  EXPECT_EQ(ValueOf(registry, "loopfleet_waiting_request_bytes"), 1 << 20);
  metrics.SetDatabaseSpace({.database_bytes = 1, .disk_free_bytes = 2, .disk_size_bytes = 3});
  EXPECT_EQ(ValueOf(registry, "loopfleet_database_bytes"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_database_disk_free_bytes"), 2);
  EXPECT_EQ(ValueOf(registry, "loopfleet_database_disk_size_bytes"), 3);
}

TEST(WorkerMetrics, SaysWhatTheSlotDidAndHowGoodFiguresAre) {
  Registry registry;
  WorkerMetrics metrics(registry, kWorkerLabels);
  metrics.SlotSpent("measure", 300ms);
  metrics.SlotSpent("measure", 200ms);
  metrics.SlotSpent("lost", 1s);
  metrics.SetHeld(3);
  metrics.Measured("A", 0.004);
  metrics.Measured("B", 0.03);
  metrics.Repeated(0.0005);
  EXPECT_NEAR(ValueOf(registry, "loopfleet_worker_slot_seconds_total{activity=\"measure\"}"), 0.5,
              1e-9);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_slot_seconds_total{activity=\"lost\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_slot_seconds_total{activity=\"idle\"}"), 0);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_held_leases"), 3);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_measurements_total{grade=\"A\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_spread_ratio_bucket{le=\"0.01\"}"), 1);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_spread_ratio_count"), 2);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_repeat_disagreement_ratio_bucket{le=\"0.001\"}"),
            1);
}

TEST(WorkerMetrics, WhatTheHostDoesNotSayIsNoNumberAndThrottlesNeverGoBack) {
  Registry registry;
  WorkerMetrics metrics(registry, kWorkerLabels);
  EXPECT_TRUE(std::isnan(ValueOf(registry, "loopfleet_worker_temperature_celsius")));
  EXPECT_TRUE(std::isnan(ValueOf(registry, "loopfleet_worker_host_clock_hertz")));
  metrics.SetTemperature(61.5);
  metrics.SetHostClock(3.2e9);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_temperature_celsius"), 61.5);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_host_clock_hertz"), 3.2e9);
  for (const std::uint64_t seen : {2, 7, 5, 9}) metrics.SetThrottles(seen);
  EXPECT_EQ(ValueOf(registry, "loopfleet_worker_throttle_events_total"), 9);
}

TEST(Metrics, AProcessSaysWhatItTakes) {
  Registry registry;
  RegisterProcess(registry);
  const double first = ValueOf(registry, "loopfleet_process_cpu_seconds_total");
  EXPECT_GT(ValueOf(registry, "loopfleet_start_timestamp_seconds"), 1.7e9);
  EXPECT_GT(ValueOf(registry, "loopfleet_process_resident_bytes"), 1e5);
  EXPECT_GT(ValueOf(registry, "loopfleet_process_open_descriptors"), 2);
  EXPECT_GE(ValueOf(registry, "loopfleet_process_cpu_seconds_total"), first);
}

// No input changes the number of series.
TEST(Metrics, TheNumberOfSeriesNeverGrows) {
  Registry registry;
  RegisterProcess(registry);
  CoordinatorMetrics coordinator(registry, kCoordinatorLabels);
  WorkerMetrics worker(registry, kWorkerLabels);
  const auto count = [&] {
    const std::string text = registry.ToText();
    return std::ranges::count(text, '\n');
  };
  const auto before = count();
  for (int i = 0; i < 2'000; ++i) {
    const std::string odd = "benchmark://mm-v0/mm" + std::to_string(i);
    coordinator.JobCompleted(odd);
    coordinator.OutcomeFrom(odd);
    coordinator.SetQueued(odd, 1);
    coordinator.StageTook(odd, 1ms);
    coordinator.Refused(odd);
    coordinator.JobRetried(odd);
    worker.JobCompleted(odd);
    worker.StageTook(odd, 1ms);
    worker.ChildRestarted("executor", odd);
    worker.Repeated(i * 1e-3);
  }
  EXPECT_EQ(count(), before);
}

TEST(Metrics, CountExactlyFromManyThreadsWhileBeingScraped) {
  Registry registry;
  CoordinatorMetrics metrics(registry, kCoordinatorLabels);
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        metrics.JobCompleted("ok");
        metrics.StageTook("store", 1us);
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(registry.ToText().empty());
  threads.clear();
  EXPECT_EQ(ValueOf(registry, "loopfleet_jobs_completed_total{outcome=\"ok\"}"), kThreads * kEach);
  EXPECT_EQ(ValueOf(registry, "loopfleet_job_stage_duration_seconds_count{stage=\"store\"}"),
            kThreads * kEach);
}

}  // namespace
}  // namespace loopfleet::monitoring
