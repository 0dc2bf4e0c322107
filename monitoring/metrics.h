#pragma once
// The metrics of each daemon as typed handles: one method for each kind of event. All methods are
// safe from any thread, cost tens of nanoseconds and never fail. Names, texts and buckets are in
// metric_table.h; the registry must outlive the handles. This folder does not use the enums of
// jobs: outcomes, codes and devices are passed by the names that common/job gives them.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitoring/labelled_metric.h"
#include "monitoring/registry.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace loopfleet::monitoring {

enum class LookupResult { kHit, kMiss, kShared };
inline constexpr std::array kLookupResults = {LookupResult::kHit, LookupResult::kMiss,
                                              LookupResult::kShared};

std::string_view NameOf(LookupResult result);

// loopfleet_build_info{component, version} = 1. Called once by main().
struct BuildInfo {
  std::string component;  // "coordinator" or "worker"
  std::string version;
};
void RegisterBuildInfo(Registry& registry, const BuildInfo& info);

// The start time of this process and its use of processor time, memory and open files, read at each
// scrape. Called once by main().
void RegisterProcess(Registry& registry);

// The label values known in advance. Each has its series from the start.
struct CoordinatorLabels {
  std::vector<std::string> outcomes;       // "ok" and every failure code's name
  std::vector<std::string> sources;        // "measured", "stored", "coalesced"
  std::vector<std::string> devices;        // "cpu", "cuda", "any"
  std::vector<std::string> worker_states;  // "ready", "draining", ...
  std::vector<std::string> attention;      // every kind's name
  std::vector<std::string> stages;         // "queue", "replay", ..., "store"
  std::vector<std::string> refusals;       // every failure code's name
  std::vector<std::string> retries;        // names of the failure codes that are retried
  std::vector<std::string> quarantines;    // every cause's name
  std::vector<std::string> events;         // "submission", "tick", ...
};

class CoordinatorMetrics {
 public:
  CoordinatorMetrics(Registry& registry, const CoordinatorLabels& labels);

  void JobsSubmitted(std::uint64_t count);
  void JobCompleted(std::string_view outcome, std::uint64_t count = 1) {
    completed_.Add(outcome, static_cast<double>(count));
  }
  void OutcomeFrom(std::string_view source, std::uint64_t count = 1) {
    outcomes_.Add(source, static_cast<double>(count));
  }
  void SetQueued(std::string_view device, std::uint64_t jobs) {
    queued_.Set(device, static_cast<double>(jobs));
  }
  void SetLeased(std::uint64_t jobs);
  void SetMirror(std::uint64_t waiting, std::chrono::nanoseconds behind);
  void SetWorkers(std::string_view state, std::uint64_t workers) {
    workers_.Set(state, static_cast<double>(workers));
  }
  void SetAttention(std::string_view kind, std::uint64_t count) {
    attention_.Set(kind, static_cast<double>(count));
  }
  void StageTook(std::string_view stage, std::chrono::nanoseconds duration,
                 std::uint64_t count = 1) {
    stages_.Observe(stage, duration, count);
  }
  void EventTook(std::string_view kind, std::chrono::nanoseconds duration) {
    events_.Observe(kind, duration);
  }
  void Committed(std::chrono::nanoseconds duration, std::uint64_t rows);
  void LookedUp(LookupResult result, std::uint64_t count = 1);
  void Refused(std::string_view code) { refusals_.Add(code); }
  void MalformedMessage();
  void MessageUnsent();
  void DamagedRows(std::uint64_t count);
  void Quarantined(std::string_view cause) { quarantines_.Add(cause); }  // of a worker
  void JobRetried(std::string_view code) { retries_.Add(code); }
  void WorkersDisagreed();
  void SetWaitingRequests(std::size_t bytes);
  // When the longest-waiting job was accepted, since 1970; nullopt: none waits.
  void SetOldestQueued(std::optional<std::chrono::nanoseconds> accepted_at);
  struct DatabaseSpace {
    std::uint64_t database_bytes = 0;
    std::uint64_t disk_free_bytes = 0;
    std::uint64_t disk_size_bytes = 0;
  };
  void SetDatabaseSpace(const DatabaseSpace& space);
  struct Blobs {
    std::uint64_t blobs = 0;
    std::uint64_t bytes = 0;
    std::uint64_t removed = 0;  // since the start
    std::uint64_t damaged = 0;  // since the start
  };
  void SetBlobs(const Blobs& kept);  // one thread
  void BlobReceived(std::uint64_t bytes);
  void BlobSent(std::uint64_t bytes);

 private:
  prometheus::Counter* submitted_;
  LabelledCounter completed_;
  LabelledCounter outcomes_;
  LabelledGauge queued_;
  prometheus::Gauge* leased_;
  prometheus::Gauge* mirror_waiting_;
  prometheus::Gauge* mirror_behind_;
  LabelledGauge workers_;
  LabelledGauge attention_;
  LabelledHistogram stages_;
  LabelledHistogram events_;
  prometheus::Histogram* commit_duration_;
  prometheus::Histogram* commit_rows_;
  std::array<prometheus::Counter*, kLookupResults.size()> lookups_;
  LabelledCounter refusals_;
  prometheus::Counter* malformed_;
  prometheus::Counter* unsent_;
  prometheus::Counter* damaged_rows_;
  LabelledCounter quarantines_;
  LabelledCounter retries_;
  prometheus::Counter* disagreements_;
  prometheus::Gauge* waiting_requests_;
  prometheus::Gauge* oldest_queued_;
  std::array<prometheus::Gauge*, 3> database_;  // in the order of DatabaseSpace
  std::array<prometheus::Gauge*, 2> blobs_;
  std::array<prometheus::Counter*, 2> blob_bytes_;  // received, sent
  std::array<prometheus::Counter*, 2> blobs_lost_;  // removed, damaged
  Blobs blobs_seen_;
};

struct WorkerLabels {
  std::vector<std::string> outcomes;         // "ok" and every failure code's name
  std::vector<std::string> stages;           // its own: "replay", "compile", "verify", "measure"
  std::vector<std::string> children;         // "compiler", "executor"
  std::vector<std::string> restart_reasons;  // "crash", "timeout", ...
  std::vector<std::string> activities = {};  // of the timing slot: "idle", "wait", ...
  std::vector<std::string> grades = {};      // "A", "B", "C", "D"
};

class WorkerMetrics {
 public:
  WorkerMetrics(Registry& registry, const WorkerLabels& labels);

  void JobCompleted(std::string_view outcome) { completed_.Add(outcome); }
  void StageTook(std::string_view stage, std::chrono::nanoseconds duration) {
    stages_.Observe(stage, duration);
  }
  void ChildRestarted(std::string_view child, std::string_view reason);
  void Connected();  // registered with the coordinator
  void Disconnected();
  bool is_connected() const;
  void SamplesTaken(std::uint64_t accepted, std::uint64_t contended);
  void SetCanaryRatio(double ratio);  // canary time now over that at the start
  void SetClock(double hertz);        // of the timing core, when a kernel was last timed
  void SetPeaks(double flop_per_second, double read_bytes_per_second,
                double triad_bytes_per_second);
  void SlotSpent(std::string_view activity, std::chrono::nanoseconds duration);  // a known one
  void SetHeld(std::uint64_t leases);
  void Measured(std::string_view grade, double spread);  // a known grade
  void Repeated(double disagreement);  // relative, between two figures of the same code
  // As the host reports them now; NaN: it does not.
  void SetHostClock(double hertz);
  void SetTemperature(double celsius);
  void SetThrottles(std::uint64_t since_start);  // never decreases

 private:
  LabelledCounter completed_;
  LabelledHistogram stages_;
  std::map<std::string, LabelledCounter, std::less<>> restarts_;  // by child
  prometheus::Gauge* connected_;
  std::array<prometheus::Counter*, 2> samples_;  // accepted, contended
  prometheus::Gauge* canary_ratio_;
  prometheus::Gauge* clock_;
  prometheus::Gauge* peak_flops_;
  std::array<prometheus::Gauge*, 2> peak_bytes_;                           // read, triad
  std::map<std::string, prometheus::Counter*, std::less<>> slot_seconds_;  // by activity
  prometheus::Gauge* held_;
  std::map<std::string, prometheus::Counter*, std::less<>> measurements_;  // by grade
  prometheus::Histogram* disagreement_;
  prometheus::Histogram* spread_;
  prometheus::Gauge* host_clock_;
  prometheus::Gauge* temperature_;
  prometheus::Counter* throttles_;
  std::mutex throttles_mutex_;
  std::uint64_t throttles_seen_ = 0;  // guarded by throttles_mutex_
};

}  // namespace loopfleet::monitoring
