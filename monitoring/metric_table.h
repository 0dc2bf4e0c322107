#pragma once
// Every metric of loopfleet: its name, help text, labels and buckets, in one table. Dashboards,
// rules and documentation are checked against it. A label never takes a value that somebody outside
// can choose (no benchmark, no client, no worker name): per-job figures belong to the result store.

#include <span>
#include <string_view>

namespace loopfleet::monitoring {

enum class MetricType { kCounter, kGauge, kHistogram };

// Which daemon's /metrics shows it. Names differ between the two, so that a sum over all targets
// counts nothing twice; only loopfleet_build_info is on both.
enum class MetricHome { kCoordinator, kWorker, kBoth };

enum class Metric {
  kBuildInfo,
  kJobsSubmitted,
  kJobsCompleted,
  kOutcomes,
  kQueueJobs,
  kLeasedJobs,
  kWorkers,
  kJobStageDuration,
  kStoreCommitDuration,
  kStoreCommitRows,
  kStoreLookups,
  kRefusals,
  kRetries,
  kDisagreements,
  kMalformedMessages,
  kDamagedRows,
  kWorkerJobsCompleted,
  kWorkerStageDuration,
  kWorkerChildRestarts,
  kWorkerConnected,
  kWorkerSamples,
  kWorkerCanaryRatio,
  kWorkerClock,
  kWorkerPeakFlops,
  kWorkerPeakBandwidth,
  kQuarantines,
};

struct MetricSpec {
  Metric metric;
  MetricHome home;
  MetricType type;
  std::string_view name;
  std::string_view help;
  std::span<const std::string_view> labels;  // label names; empty for most
  std::span<const double> buckets;           // upper bounds of a histogram, else empty
};

std::span<const MetricSpec> MetricTable();  // in the order of enum Metric
const MetricSpec& SpecOf(Metric metric);

}  // namespace loopfleet::monitoring
