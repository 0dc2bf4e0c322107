#include "monitoring/metric_table.h"

#include <array>
#include <cstddef>
#include <utility>

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
constexpr std::array<std::string_view, 1> kActivityLabel = {"activity"};
constexpr std::array<std::string_view, 1> kCauseLabel = {"cause"};
constexpr std::array<std::string_view, 1> kGradeLabel = {"grade"};
constexpr std::array<std::string_view, 1> kKindLabel = {"kind"};
constexpr std::array<std::string_view, 2> kRestartLabels = {"child", "reason"};

// One set of bounds for all stages, so that they can be compared: 10 us (a replay) to 1 h (a wait
// in a busy fleet's queue), with 3x steps in the range of compile and measurement times.
constexpr std::array kStageSeconds = {1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2,  3e-2,  0.1,
                                      0.3,  1.0,  3.0,  10.0, 60.0, 600.0, 3600.0};
// A commit is one fdatasync, 0.2 ms on a good disk; the job timeouts end at 10 s.
constexpr std::array kCommitSeconds = {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3,
                                       1e-2, 3e-2, 0.1,  0.3,  1.0,  10.0};
// An event should be over within 5 ms, and no other request waits longer than 20 ms for it.
constexpr std::array kEventSeconds = {1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2,
                                      2e-2, 5e-2, 0.1,  0.3,  1.0,  3.0,  10.0};
// A figure of grade A is good to 1 %, of grade B to 5 %.
constexpr std::array kRelative = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.3, 1.0};
constexpr std::array kCommitRows = {1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0};

constexpr std::array<MetricSpec, 48> kTable = {{
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
    {Metric::kMirrorWaiting,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_mirror_waiting_outcomes",
     "Finished outcomes that are not in PostgreSQL yet, at least; 0 without --results.",
     {},
     {}},
    {Metric::kMirrorBehind,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_mirror_behind_seconds",
     "Age of the oldest outcome that is not in PostgreSQL yet, about; 0 while none waits.",
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
    {Metric::kEventDuration, MetricHome::kCoordinator, MetricType::kHistogram,
     "loopfleet_event_seconds",
     "Time that one event, or one slice of a longer one, kept the event loop, by kind.", kKindLabel,
     kEventSeconds},
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
     "Lookups of an equal result: hit or miss; of the misses, those that another coordinator's "
     "result in PostgreSQL answered: shared.",
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
     "Failed attempts that were retried, by code.",
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
    {Metric::kUnsentMessages,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_unsent_messages_total",
     "Messages that were not sent because their peer does not read what waits for it.",
     {},
     {}},
    {Metric::kDamagedRows,
     MetricHome::kCoordinator,
     MetricType::kCounter,
     "loopfleet_damaged_rows_total",
     "Damaged stored rows met; they are never used.",
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
     "Times that a worker was quarantined, by cause.",
     kCauseLabel,
     {}},
    {Metric::kStartTimestamp,
     MetricHome::kBoth,
     MetricType::kGauge,
     "loopfleet_start_timestamp_seconds",
     "When this process started, in seconds since 1970.",
     {},
     {}},
    {Metric::kProcessCpu,
     MetricHome::kBoth,
     MetricType::kCounter,
     "loopfleet_process_cpu_seconds_total",
     "Processor time of this process, without its children.",
     {},
     {}},
    {Metric::kProcessResident,
     MetricHome::kBoth,
     MetricType::kGauge,
     "loopfleet_process_resident_bytes",
     "Memory that this process has in use, without its children.",
     {},
     {}},
    {Metric::kProcessDescriptors,
     MetricHome::kBoth,
     MetricType::kGauge,
     "loopfleet_process_open_descriptors",
     "Files and sockets that this process has open.",
     {},
     {}},
    {Metric::kOldestQueuedJob,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_queue_oldest_job_timestamp_seconds",
     "When the job that has waited longest for a worker was accepted, in seconds since 1970; NaN "
     "while none waits.",
     {},
     {}},
    {Metric::kDatabaseBytes,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_database_bytes",
     "Size of the database with its write-ahead log.",
     {},
     {}},
    {Metric::kDatabaseFreeBytes,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_database_disk_free_bytes",
     "Room left for this process on the disk of the database.",
     {},
     {}},
    {Metric::kDatabaseDiskBytes,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_database_disk_size_bytes",
     "Size of the disk of the database.",
     {},
     {}},
    {Metric::kWorkerSlotSeconds,
     MetricHome::kWorker,
     MetricType::kCounter,
     "loopfleet_worker_slot_seconds_total",
     "What the timing slot spent its time on; the activities add up to the time since the pipeline "
     "started.",
     kActivityLabel,
     {}},
    {Metric::kWorkerHeldLeases,
     MetricHome::kWorker,
     MetricType::kGauge,
     "loopfleet_worker_held_leases",
     "Jobs in the hands of this worker, waiting ones included.",
     {},
     {}},
    {Metric::kWorkerMeasurements,
     MetricHome::kWorker,
     MetricType::kCounter,
     "loopfleet_worker_measurements_total",
     "Figures by their grade: how far each can be trusted.",
     kGradeLabel,
     {}},
    {Metric::kWorkerRepeatDisagreement,
     MetricHome::kWorker,
     MetricType::kHistogram,
     "loopfleet_worker_repeat_disagreement_ratio",
     "Relative difference of two accepted figures of the same code on this worker, in different "
     "buffers and at different times.",
     {},
     kRelative},
    {Metric::kWorkerSpread,
     MetricHome::kWorker,
     MetricType::kHistogram,
     "loopfleet_worker_spread_ratio",
     "Relative half-width of the interval round each figure.",
     {},
     kRelative},
    {Metric::kWorkerHostClock,
     MetricHome::kWorker,
     MetricType::kGauge,
     "loopfleet_worker_host_clock_hertz",
     "Clock that the system states for the timing core, or the driver for the device; NaN where it "
     "says none.",
     {},
     {}},
    {Metric::kWorkerTemperature,
     MetricHome::kWorker,
     MetricType::kGauge,
     "loopfleet_worker_temperature_celsius",
     "Hottest sensor of the processor or device; NaN where there is none to read.",
     {},
     {}},
    {Metric::kWorkerThrottles,
     MetricHome::kWorker,
     MetricType::kCounter,
     "loopfleet_worker_throttle_events_total",
     "Times that the processor slowed the timing core down because it was hot, since the worker "
     "started.",
     {},
     {}},
    {Metric::kWaitingRequestBytes,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_waiting_request_bytes",
     "Requests of clients that wait for their turn to be looked at.",
     {},
     {}},
    {Metric::kNeedsAttention,
     MetricHome::kCoordinator,
     MetricType::kGauge,
     "loopfleet_needs_attention",
     "Workers or jobs that need attention, by kind; 0: none.",
     kKindLabel,
     {}},
}};

}  // namespace

std::string_view NameOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter: return "counter";
    case MetricType::kGauge: return "gauge";
    case MetricType::kHistogram: return "histogram";
  }
  LF_CHECK(false, "metric type {}", static_cast<int>(type));
}

std::string_view NameOf(Unit unit) {
  switch (unit) {
    case Unit::kNone: return "";
    case Unit::kSeconds: return "seconds";
    case Unit::kTimestampSeconds: return "seconds since 1970";
    case Unit::kBytes: return "bytes";
    case Unit::kRatio: return "ratio";
    case Unit::kHertz: return "hertz";
    case Unit::kCelsius: return "degrees Celsius";
    case Unit::kPerSecond: return "per second";
  }
  LF_CHECK(false, "unit {}", static_cast<int>(unit));
}

Unit UnitOf(const MetricSpec& spec) {
  std::string_view name = spec.name;
  if (name.ends_with("_total")) name.remove_suffix(std::string_view("_total").size());
  constexpr std::array<std::pair<std::string_view, Unit>, 8> kEnds = {{
      {"_timestamp_seconds", Unit::kTimestampSeconds},
      {"_per_second", Unit::kPerSecond},
      {"_flops", Unit::kPerSecond},
      {"_seconds", Unit::kSeconds},
      {"_bytes", Unit::kBytes},
      {"_ratio", Unit::kRatio},
      {"_hertz", Unit::kHertz},
      {"_celsius", Unit::kCelsius},
  }};
  for (const auto& [end, unit] : kEnds) {
    if (name.ends_with(end)) return unit;
  }
  return Unit::kNone;
}

std::span<const MetricSpec> MetricTable() { return kTable; }

const MetricSpec& SpecOf(Metric metric) {
  const auto index = static_cast<std::size_t>(metric);
  LF_CHECK(index < kTable.size() && kTable[index].metric == metric, "metric {} has no row", index);
  return kTable[index];
}

}  // namespace loopfleet::monitoring
