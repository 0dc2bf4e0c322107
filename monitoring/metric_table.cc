#include "monitoring/metric_table.h"

#include <array>
#include <cstddef>

#include "common/base/check.h"

namespace loopfleet::monitoring {
namespace {

constexpr std::array<std::string_view, 2> kBuildLabels = {"component", "version"};
constexpr std::array<std::string_view, 1> kOutcomeLabel = {"outcome"};
constexpr std::array<std::string_view, 1> kSourceLabel = {"source"};
constexpr std::array<std::string_view, 1> kDeviceLabel = {"device"};
constexpr std::array<std::string_view, 1> kStateLabel = {"state"};
constexpr std::array<std::string_view, 1> kStageLabel = {"stage"};
constexpr std::array<std::string_view, 1> kResultLabel = {"result"};
constexpr std::array<std::string_view, 1> kCodeLabel = {"code"};
constexpr std::array<std::string_view, 1> kVerdictLabel = {"verdict"};
constexpr std::array<std::string_view, 1> kAccessLabel = {"access"};
constexpr std::array<std::string_view, 2> kRestartLabels = {"child", "reason"};

// One set of bounds for all stages, so that they can be compared: 10 us (a replay) to 1 h (a wait
// in the queue of a busy fleet), with 3x steps where compile and measurement times fall.
constexpr std::array kStageSeconds = {1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2,  3e-2,  0.1,
                                      0.3,  1.0,  3.0,  10.0, 60.0, 600.0, 3600.0};
// A commit is one fdatasync, 0.2 ms on a good disk; the job timeouts end at 10 s.
constexpr std::array kCommitSeconds = {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3,
                                       1e-2, 3e-2, 0.1,  0.3,  1.0,  10.0};
constexpr std::array kCommitRows = {1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0};

constexpr std::array<MetricSpec, 26> kTable = {{
    {Metric::kBuildInfo,
     MetricHome::kBoth,
     MetricType::kGauge,
     "loopfleet_build_info",
     "Always 1; its labels say which component and version this process is.",
     kBuildLabels,
     {}},
    {Metric::kJobsSubmitted,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_jobs_submitted_total",
     "Jobs of accepted batches, on disk before they count.",
     {},
     {}},
    {Metric::kJobsCompleted,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_jobs_completed_total",
     "Jobs that have their outcome: ok, or the code of their failure.",
     kOutcomeLabel,
     {}},
    {Metric::kOutcomes,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_outcomes_total",
     "Outcomes by where they came from: measured afresh, stored before, or coalesced with an equal "
     "job in flight.",
     kSourceLabel,
     {}},
    {Metric::kQueueJobs,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_queue_jobs",
     "Accepted jobs that wait for a worker, by the device they ask for.",
     kDeviceLabel,
     {}},
    {Metric::kLeasedJobs,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_leased_jobs",
     "Jobs that a worker holds a lease for.",
     {},
     {}},
    {Metric::kWorkers,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_workers",
     "Known workers by state.",
     kStateLabel,
     {}},
    {Metric::kJobStageDuration, MetricHome::kCoordinator, MetricType::kHistogram,
     "loopfleet_job_stage_duration_seconds",
     "Time that finished jobs spent in each stage of their way.", kStageLabel, kStageSeconds},
    {Metric::kStoreCommitDuration,
     MetricHome::kCoordinator,
     MetricType::kHistogram,
     "loopfleet_store_commit_duration_seconds",
     "Time of one durable commit of the database.",
     {},
     kCommitSeconds},
    {Metric::kStoreCommitRows,
     MetricHome::kCoordinator,
     MetricType::kHistogram,
     "loopfleet_store_commit_rows",
     "Rows written by one commit (group commit).",
     {},
     kCommitRows},
    {Metric::kStoreLookups,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_store_lookups_total",
     "Lookups of an equal result: hit or miss.",
     kResultLabel,
     {}},
    {Metric::kRefusals,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_refusals_total",
     "Requests that were refused, by code.",
     kCodeLabel,
     {}},
    {Metric::kRetries,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_retries_total",
     "Turns of jobs that ended with a failure which is tried again, by code.",
     kCodeLabel,
     {}},
    {Metric::kDisagreements,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_disagreements_total",
     "Times that two workers of a class said different things about one tree.",
     {},
     {}},
    {Metric::kMalformedMessages,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_malformed_messages_total",
     "Received messages that could not be decoded.",
     {},
     {}},
    {Metric::kDamagedRows,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_damaged_rows_total",
     "Times that a stored row was met which is not what was written; it is never used.",
     {},
     {}},
    {Metric::kWorkerJobsCompleted,
     MetricHome::kWorker,
     MetricType::kCounter,
     "loopfleet_worker_jobs_completed_total",
     "Attempts that this worker finished: ok, or the code of their failure.",
     kOutcomeLabel,
     {}},
    {Metric::kWorkerStageDuration, MetricHome::kWorker, MetricType::kHistogram,
     "loopfleet_worker_stage_duration_seconds", "Time of each stage of this worker's attempts.",
     kStageLabel, kStageSeconds},
    {Metric::kWorkerChildRestarts,
     MetricHome::kWorker,
     MetricType::kCounter,
     "loopfleet_worker_child_restarts_total",
     "Compiler and executor processes that had to be replaced, by reason.",
     kRestartLabels,
     {}},
    {Metric::kWorkerConnected,
     MetricHome::kWorker,
     MetricType::kGauge,
     "loopfleet_worker_connected",
     "1 while this worker is registered with its coordinator.",
     {},
     {}},
    {Metric::kWorkerSamples,
     MetricHome::kWorker,
     MetricType::kCounter,
     "loopfleet_worker_samples_total",
     "Timed batches of kernels: accepted, or contended (something else used the core beside them).",
     kVerdictLabel,
     {}},
    {Metric::kWorkerCanaryRatio,
     MetricHome::kWorker,
     MetricType::kGauge,
     "loopfleet_worker_canary_ratio",
     "Time of kernels that are always the same, now to when the worker started; 0 before the first "
     "comparison.",
     {},
     {}},
    {Metric::kWorkerClock,
     MetricHome::kWorker,
     MetricType::kGauge,
     "loopfleet_worker_clock_hertz",
     "Clock of the timing core when a kernel was last timed; 0 if it cannot be measured.",
     {},
     {}},
    {Metric::kWorkerPeakFlops,
     MetricHome::kWorker,
     MetricType::kGauge,
     "loopfleet_worker_peak_flops",
     "Floating-point operations a second (float32, one thread) measured at start.",
     {},
     {}},
    {Metric::kWorkerPeakBandwidth,
     MetricHome::kWorker,
     MetricType::kGauge,
     "loopfleet_worker_peak_bytes_per_second",
     "Memory bandwidth (one thread) measured at start.",
     kAccessLabel,
     {}},
    {Metric::kQuarantines,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_quarantines_total",
     "Times that a worker was quarantined because its canaries drifted.",
     {},
     {}},
}};

}  // namespace

std::span<const MetricSpec> MetricTable() { return kTable; }

const MetricSpec& SpecOf(Metric metric) {
  const auto index = static_cast<std::size_t>(metric);
  LF_CHECK(index < kTable.size() && kTable[index].metric == metric, "metric {} has no row", index);
  return kTable[index];
}

}  // namespace loopfleet::monitoring
