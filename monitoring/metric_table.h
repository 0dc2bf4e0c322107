#pragma once
// Every metric of loopfleet: its name, help text, labels and buckets, in one table. Dashboards,
// rules and docs/METRICS.md are checked against it. A label never takes a value that an outsider
// can choose (no benchmark, client or worker name): per-job figures belong to the result store, and
// per-worker figures are on that worker's own /metrics, where `instance` names it.

#include <span>
#include <string_view>

namespace loopfleet::monitoring {

enum class MetricType { kCounter, kGauge, kHistogram };

// The daemon whose /metrics shows it. Names differ between the two, so that a sum over all targets
// counts nothing twice. Both show only properties of every process (build, start, memory).
enum class MetricHome { kCoordinator, kWorker, kBoth };

enum class Metric {
  kBuildInfo,
  kJobsSubmitted,
  kJobsCompleted,
  kOutcomes,
  kQueueJobs,
  kLeasedJobs,
  kMirrorWaiting,
  kMirrorBehind,
  kWorkers,
  kJobStageDuration,
  kEventDuration,
  kStoreCommitDuration,
  kStoreCommitRows,
  kStoreLookups,
  kRefusals,
  kRetries,
  kDisagreements,
  kMalformedMessages,
  kUnsentMessages,
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
  kStartTimestamp,
  kProcessCpu,
  kProcessResident,
  kProcessDescriptors,
  kOldestQueuedJob,
  kDatabaseBytes,
  kDatabaseFreeBytes,
  kDatabaseDiskBytes,
  kWorkerSlotSeconds,
  kWorkerHeldLeases,
  kWorkerMeasurements,
  kWorkerRepeatDisagreement,
  kWorkerSpread,
  kWorkerHostClock,
  kWorkerTemperature,
  kWorkerThrottles,
  kWaitingRequestBytes,
  kNeedsAttention,
  kBlobs,
  kBlobBytes,
  kBlobBytesReceived,
  kBlobBytesSent,
  kBlobsRemoved,
  kBlobsDamaged,
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
