#include "monitoring/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <system_error>

#include "common/base/check.h"
#include "monitoring/metric_table.h"

namespace loopfleet::monitoring {
namespace {

using prometheus::Labels;

template <class Builder>
auto& FamilyOf(Builder builder, Registry& registry, const MetricSpec& spec) {
  return builder.Name(std::string(spec.name))
      .Help(std::string(spec.help))
      .Register(registry.prometheus());
}

prometheus::Family<prometheus::Counter>& CounterFamily(Registry& registry, Metric metric) {
  const MetricSpec& spec = SpecOf(metric);
  LF_CHECK(spec.type == MetricType::kCounter, "{} is no counter", spec.name);
  return FamilyOf(prometheus::BuildCounter(), registry, spec);
}

prometheus::Family<prometheus::Gauge>& GaugeFamily(Registry& registry, Metric metric) {
  const MetricSpec& spec = SpecOf(metric);
  LF_CHECK(spec.type == MetricType::kGauge, "{} is no gauge", spec.name);
  return FamilyOf(prometheus::BuildGauge(), registry, spec);
}

// The labels of one series; `values` in the order of the table's label names.
Labels LabelsOf(Metric metric, std::initializer_list<std::string_view> values) {
  const MetricSpec& spec = SpecOf(metric);
  LF_CHECK(spec.labels.size() == values.size(), "{} has {} labels", spec.name, spec.labels.size());
  Labels labels;
  auto value = values.begin();
  for (const std::string_view name : spec.labels) labels.emplace(name, *value++);
  return labels;
}

prometheus::Histogram* AddHistogram(Registry& registry, Metric metric,
                                    std::initializer_list<std::string_view> values = {}) {
  const MetricSpec& spec = SpecOf(metric);
  LF_CHECK(spec.type == MetricType::kHistogram, "{} is no histogram", spec.name);
  const prometheus::Histogram::BucketBoundaries buckets(spec.buckets.begin(), spec.buckets.end());
  return &FamilyOf(prometheus::BuildHistogram(), registry, spec)
              .Add(LabelsOf(metric, values), buckets);
}

LabelledHistogram AddHistograms(Registry& registry, Metric metric,
                                const std::vector<std::string>& values) {
  LabelledHistogram::Cells cells;
  for (const std::string& value : values) {
    cells.emplace(value, AddHistogram(registry, metric, {value}));
  }
  return LabelledHistogram(std::move(cells), SpecOf(metric).buckets);
}

LabelledGauge AddGauges(Registry& registry, Metric metric, const std::vector<std::string>& values) {
  auto& family = GaugeFamily(registry, metric);
  LabelledGauge::Cells cells;
  for (const std::string& value : values) {
    cells.emplace(value, &family.Add(LabelsOf(metric, {value})));
  }
  return LabelledGauge(std::move(cells));
}

// A cell for each value and one for all others, for a metric with a single label.
LabelledCounter AddLabelled(Registry& registry, Metric metric,
                            const std::vector<std::string>& values) {
  auto& family = CounterFamily(registry, metric);
  LabelledCounter::Cells cells;
  for (const std::string& value : values) {
    cells.emplace(value, &family.Add(LabelsOf(metric, {value})));
  }
  const std::string other(LabelledCounter::kOther);
  cells.emplace(other, &family.Add(LabelsOf(metric, {other})));
  return LabelledCounter(std::move(cells));
}

// A cell for each value, for a label whose values are all known.
std::map<std::string, prometheus::Counter*, std::less<>> AddClosed(
    Registry& registry, Metric metric, const std::vector<std::string>& values) {
  std::map<std::string, prometheus::Counter*, std::less<>> cells;
  auto& family = CounterFamily(registry, metric);
  for (const std::string& value : values) {
    cells.emplace(value, &family.Add(LabelsOf(metric, {value})));
  }
  return cells;
}

prometheus::Gauge* AddUnknown(Registry& registry, Metric metric) {
  auto* gauge = &GaugeFamily(registry, metric).Add({});
  gauge->Set(std::numeric_limits<double>::quiet_NaN());
  return gauge;
}

}  // namespace

std::string_view NameOf(LookupResult result) {
  switch (result) {
    case LookupResult::kHit: return "hit";
    case LookupResult::kMiss: return "miss";
    case LookupResult::kShared: return "shared";
  }
  return "";
}

void RegisterBuildInfo(Registry& registry, const BuildInfo& info) {
  GaugeFamily(registry, Metric::kBuildInfo)
      .Add(LabelsOf(Metric::kBuildInfo, {info.component, info.version}))
      .Set(1);
}

void RegisterProcess(Registry& registry) {
  struct Process {
    prometheus::Counter& cpu;
    prometheus::Gauge& resident;
    prometheus::Gauge& descriptors;
    std::mutex mutex = {};
    double cpu_seen = 0;  // seconds; guarded by mutex
  };
  const auto process = std::shared_ptr<Process>(
      new Process{.cpu = CounterFamily(registry, Metric::kProcessCpu).Add({}),
                  .resident = GaugeFamily(registry, Metric::kProcessResident).Add({}),
                  .descriptors = GaugeFamily(registry, Metric::kProcessDescriptors).Add({})});
  GaugeFamily(registry, Metric::kStartTimestamp)
      .Add({})
      .Set(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
               .count());
  registry.OnScrape([process] {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0) {
      const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
      };
      const double now = seconds(usage.ru_utime) + seconds(usage.ru_stime);
      std::lock_guard lock(process->mutex);
      if (now > process->cpu_seen) process->cpu.Increment(now - process->cpu_seen);
      process->cpu_seen = std::max(process->cpu_seen, now);
    }
    std::ifstream statm("/proc/self/statm");
    double pages = 0;
    double resident = 0;
    if (statm >> pages >> resident) {
      process->resident.Set(resident * static_cast<double>(::sysconf(_SC_PAGESIZE)));
    }
    std::error_code gone;
    std::filesystem::directory_iterator file("/proc/self/fd", gone);
    double files = 0;
    for (; !gone && file != std::filesystem::directory_iterator(); file.increment(gone)) ++files;
    process->descriptors.Set(files);
  });
}

CoordinatorMetrics::CoordinatorMetrics(Registry& registry, const CoordinatorLabels& labels)
    : submitted_(&CounterFamily(registry, Metric::kJobsSubmitted).Add({})),
      completed_(AddLabelled(registry, Metric::kJobsCompleted, labels.outcomes)),
      outcomes_(AddLabelled(registry, Metric::kOutcomes, labels.sources)),
      queued_(AddGauges(registry, Metric::kQueueJobs, labels.devices)),
      leased_(&GaugeFamily(registry, Metric::kLeasedJobs).Add({})),
      mirror_waiting_(&GaugeFamily(registry, Metric::kMirrorWaiting).Add({})),
      mirror_behind_(&GaugeFamily(registry, Metric::kMirrorBehind).Add({})),
      workers_(AddGauges(registry, Metric::kWorkers, labels.worker_states)),
      attention_(AddGauges(registry, Metric::kNeedsAttention, labels.attention)),
      stages_(AddHistograms(registry, Metric::kJobStageDuration, labels.stages)),
      events_(AddHistograms(registry, Metric::kEventDuration, labels.events)),
      commit_duration_(AddHistogram(registry, Metric::kStoreCommitDuration)),
      commit_rows_(AddHistogram(registry, Metric::kStoreCommitRows)),
      refusals_(AddLabelled(registry, Metric::kRefusals, labels.refusals)),
      malformed_(&CounterFamily(registry, Metric::kMalformedMessages).Add({})),
      unsent_(&CounterFamily(registry, Metric::kUnsentMessages).Add({})),
      damaged_rows_(&CounterFamily(registry, Metric::kDamagedRows).Add({})),
      quarantines_(AddLabelled(registry, Metric::kQuarantines, labels.quarantines)),
      retries_(AddLabelled(registry, Metric::kRetries, labels.retries)),
      disagreements_(&CounterFamily(registry, Metric::kDisagreements).Add({})),
      waiting_requests_(&GaugeFamily(registry, Metric::kWaitingRequestBytes).Add({})),
      oldest_queued_(AddUnknown(registry, Metric::kOldestQueuedJob)),
      database_{AddUnknown(registry, Metric::kDatabaseBytes),
                AddUnknown(registry, Metric::kDatabaseFreeBytes),
                AddUnknown(registry, Metric::kDatabaseDiskBytes)},
      blobs_{&GaugeFamily(registry, Metric::kBlobs).Add({}),
             &GaugeFamily(registry, Metric::kBlobBytes).Add({})},
      blob_bytes_{&CounterFamily(registry, Metric::kBlobBytesReceived).Add({}),
                  &CounterFamily(registry, Metric::kBlobBytesSent).Add({})},
      blobs_lost_{&CounterFamily(registry, Metric::kBlobsRemoved).Add({}),
                  &CounterFamily(registry, Metric::kBlobsDamaged).Add({})} {
  for (const LookupResult result : kLookupResults) {
    lookups_[static_cast<std::size_t>(result)] =
        &CounterFamily(registry, Metric::kStoreLookups)
             .Add(LabelsOf(Metric::kStoreLookups, {NameOf(result)}));
  }
}

void CoordinatorMetrics::JobsSubmitted(std::uint64_t count) {
  submitted_->Increment(static_cast<double>(count));
}

void CoordinatorMetrics::SetMirror(std::uint64_t waiting, std::chrono::nanoseconds behind) {
  mirror_waiting_->Set(static_cast<double>(waiting));
  mirror_behind_->Set(std::chrono::duration<double>(behind).count());
}
void CoordinatorMetrics::SetLeased(std::uint64_t jobs) { leased_->Set(static_cast<double>(jobs)); }

void CoordinatorMetrics::Committed(std::chrono::nanoseconds duration, std::uint64_t rows) {
  commit_duration_->Observe(std::chrono::duration<double>(duration).count());
  commit_rows_->Observe(static_cast<double>(rows));
}

void CoordinatorMetrics::LookedUp(LookupResult result, std::uint64_t count) {
  lookups_[static_cast<std::size_t>(result)]->Increment(static_cast<double>(count));
}

void CoordinatorMetrics::MalformedMessage() { malformed_->Increment(); }
void CoordinatorMetrics::MessageUnsent() { unsent_->Increment(); }
void CoordinatorMetrics::DamagedRows(std::uint64_t count) {
  damaged_rows_->Increment(static_cast<double>(count));
}

WorkerMetrics::WorkerMetrics(Registry& registry, const WorkerLabels& labels)
    : completed_(AddLabelled(registry, Metric::kWorkerJobsCompleted, labels.outcomes)),
      stages_(AddHistograms(registry, Metric::kWorkerStageDuration, labels.stages)),
      connected_(&GaugeFamily(registry, Metric::kWorkerConnected).Add({})),
      canary_ratio_(&GaugeFamily(registry, Metric::kWorkerCanaryRatio).Add({})),
      clock_(&GaugeFamily(registry, Metric::kWorkerClock).Add({})),
      peak_flops_(&GaugeFamily(registry, Metric::kWorkerPeakFlops).Add({})),
      slot_seconds_(AddClosed(registry, Metric::kWorkerSlotSeconds, labels.activities)),
      held_(&GaugeFamily(registry, Metric::kWorkerHeldLeases).Add({})),
      measurements_(AddClosed(registry, Metric::kWorkerMeasurements, labels.grades)),
      disagreement_(AddHistogram(registry, Metric::kWorkerRepeatDisagreement)),
      spread_(AddHistogram(registry, Metric::kWorkerSpread)),
      host_clock_(AddUnknown(registry, Metric::kWorkerHostClock)),
      temperature_(AddUnknown(registry, Metric::kWorkerTemperature)),
      throttles_(&CounterFamily(registry, Metric::kWorkerThrottles).Add({})) {
  constexpr std::array<std::string_view, 2> kVerdicts = {"accepted", "contended"};
  constexpr std::array<std::string_view, 2> kAccesses = {"read", "triad"};
  for (std::size_t i = 0; i < 2; ++i) {
    samples_[i] = &CounterFamily(registry, Metric::kWorkerSamples)
                       .Add(LabelsOf(Metric::kWorkerSamples, {kVerdicts[i]}));
    peak_bytes_[i] = &GaugeFamily(registry, Metric::kWorkerPeakBandwidth)
                          .Add(LabelsOf(Metric::kWorkerPeakBandwidth, {kAccesses[i]}));
  }
  auto& family = CounterFamily(registry, Metric::kWorkerChildRestarts);
  std::vector<std::string> reasons = labels.restart_reasons;
  reasons.emplace_back(LabelledCounter::kOther);
  for (const std::string& child : labels.children) {
    LabelledCounter::Cells cells;
    for (const std::string& reason : reasons) {
      cells.emplace(reason, &family.Add(LabelsOf(Metric::kWorkerChildRestarts, {child, reason})));
    }
    restarts_.emplace(child, LabelledCounter(std::move(cells)));
  }
}

void WorkerMetrics::ChildRestarted(std::string_view child, std::string_view reason) {
  const auto found = restarts_.find(child);
  LF_CHECK(found != restarts_.end(), "no child is called '{}'", child);
  found->second.Add(reason);
}

void WorkerMetrics::Connected() { connected_->Set(1); }
void WorkerMetrics::Disconnected() { connected_->Set(0); }
bool WorkerMetrics::is_connected() const { return connected_->Value() > 0; }

void CoordinatorMetrics::WorkersDisagreed() { disagreements_->Increment(); }

void WorkerMetrics::SamplesTaken(std::uint64_t accepted, std::uint64_t contended) {
  samples_[0]->Increment(static_cast<double>(accepted));
  samples_[1]->Increment(static_cast<double>(contended));
}

void WorkerMetrics::SetCanaryRatio(double ratio) { canary_ratio_->Set(ratio); }
void WorkerMetrics::SetClock(double hertz) { clock_->Set(hertz); }

void WorkerMetrics::SetPeaks(double flop_per_second, double read_bytes_per_second,
                             double triad_bytes_per_second) {
  peak_flops_->Set(flop_per_second);
  peak_bytes_[0]->Set(read_bytes_per_second);
  peak_bytes_[1]->Set(triad_bytes_per_second);
}

void CoordinatorMetrics::SetWaitingRequests(std::size_t bytes) {
  waiting_requests_->Set(static_cast<double>(bytes));
}

void CoordinatorMetrics::SetOldestQueued(std::optional<std::chrono::nanoseconds> accepted_at) {
  oldest_queued_->Set(accepted_at ? std::chrono::duration<double>(*accepted_at).count()
                                  : std::numeric_limits<double>::quiet_NaN());
}

void CoordinatorMetrics::SetDatabaseSpace(const DatabaseSpace& space) {
  database_[0]->Set(static_cast<double>(space.database_bytes));
  database_[1]->Set(static_cast<double>(space.disk_free_bytes));
  database_[2]->Set(static_cast<double>(space.disk_size_bytes));
}

void CoordinatorMetrics::SetBlobs(const Blobs& kept) {
  blobs_[0]->Set(static_cast<double>(kept.blobs));
  blobs_[1]->Set(static_cast<double>(kept.bytes));
  blobs_lost_[0]->Increment(static_cast<double>(kept.removed - blobs_seen_.removed));
  blobs_lost_[1]->Increment(static_cast<double>(kept.damaged - blobs_seen_.damaged));
  blobs_seen_ = kept;
}

void CoordinatorMetrics::BlobReceived(std::uint64_t bytes) {
  blob_bytes_[0]->Increment(static_cast<double>(bytes));
}

void CoordinatorMetrics::BlobSent(std::uint64_t bytes) {
  blob_bytes_[1]->Increment(static_cast<double>(bytes));
}

void WorkerMetrics::SlotSpent(std::string_view activity, std::chrono::nanoseconds duration) {
  const auto found = slot_seconds_.find(activity);
  LF_CHECK(found != slot_seconds_.end(), "no activity is called '{}'", activity);
  found->second->Increment(std::chrono::duration<double>(duration).count());
}

void WorkerMetrics::SetHeld(std::uint64_t leases) { held_->Set(static_cast<double>(leases)); }

void WorkerMetrics::Measured(std::string_view grade, double spread) {
  const auto found = measurements_.find(grade);
  LF_CHECK(found != measurements_.end(), "no grade is called '{}'", grade);
  found->second->Increment();
  spread_->Observe(spread);
}

void WorkerMetrics::Repeated(double disagreement) { disagreement_->Observe(disagreement); }
void WorkerMetrics::SetHostClock(double hertz) { host_clock_->Set(hertz); }
void WorkerMetrics::SetTemperature(double celsius) { temperature_->Set(celsius); }

void WorkerMetrics::SetThrottles(std::uint64_t since_start) {
  std::lock_guard lock(throttles_mutex_);
  if (since_start <= throttles_seen_) return;
  throttles_->Increment(static_cast<double>(since_start - throttles_seen_));
  throttles_seen_ = since_start;
}

}  // namespace loopfleet::monitoring
