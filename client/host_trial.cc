#include "client/host_trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "client/client.h"
#include "client/local_cluster.h"
#include "client/scratch_dir.h"
#include "common/base/quantile.h"
#include "common/job/job_spec.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kLeastStarts = 3;
constexpr double kNsPerMs = 1e6;

double RelativeDifference(double a, double b) { return std::abs(a - b) / std::min(a, b); }

// Visits each ordered pair of figures of one kernel from different starts.
template <class Visit>
void ForEachPair(const std::vector<TrialFigure>& figures, const Visit& visit) {
  for (const TrialFigure& one : figures) {
    for (const TrialFigure& other : figures) {
      if (one.kernel == other.kernel && one.start != other.start) visit(one, other);
    }
  }
}

Agreement AgreementOf(const std::vector<double>& differences) {
  // Both orders of a pair are in it.
  return {.pairs = differences.size() / 2,
          .p50 = Quantile(differences, 0.5),
          .p95 = Quantile(differences, 0.95)};
}

// By kernel, the median of the figures taken alone against that of the others.
std::vector<double> AloneToBatch(const std::vector<TrialFigure>& figures) {
  std::map<std::size_t, std::map<bool, std::vector<double>>> by_kernel;
  for (const TrialFigure& figure : figures) {
    by_kernel[figure.kernel][figure.is_alone].push_back(figure.elapsed_ns);
  }
  std::vector<double> differences;
  for (const auto& [kernel, taken] : by_kernel) {
    if (taken.size() < 2) continue;
    differences.push_back(
        std::abs(Quantile(taken.at(true), 0.5) / Quantile(taken.at(false), 0.5) - 1));
  }
  return differences;
}

void AssessLatencies(std::vector<TrialLatency> latencies, TrialReport& report) {
  std::ranges::sort(latencies, {}, &TrialLatency::ms);
  std::vector<double> all;
  std::vector<double> of_short;
  for (const TrialLatency& latency : latencies) {
    all.push_back(latency.ms);
    if (latency.run_ms <= kShortRunMs) of_short.push_back(latency.ms);
  }
  report.latency_p50_ms = Quantile(all, 0.5);
  report.latency_p99_ms = Quantile(all, 0.99);
  report.latency_short_p99_ms = Quantile(of_short, 0.99);
  const std::size_t slow = (latencies.size() + 99) / 100;
  for (const TrialLatency& latency : std::span(latencies).last(slow)) {
    for (const Stage stage : kStages) {
      report.slowest[stage] += latency.stages[stage] / static_cast<std::int64_t>(slow);
    }
  }
}

// Matrix products of 48, 192 and 768 KiB, each in several loop orders.
Result<std::vector<JobSpec>> TrialJobs() {
  std::vector<JobSpec> jobs;
  for (const int size : {64, 128, 256}) {
    for (const char* const actions : {"", "down,swap_up", "split_16,down,swap_up", "vectorize"}) {
      const auto parsed = looptree::ParseActionList(actions);
      if (!parsed) return Fail(ErrorKind::kInvalid, parsed.error().message);
      const std::string uri = "benchmark://mm-v0/mm" + std::to_string(size) + "_" +
                              std::to_string(size) + "_" + std::to_string(size);
      jobs.push_back({.source = looptree::BenchmarkUri{uri},
                      .actions = *parsed,
                      .freshness = Freshness::kMeasureAgain});
    }
  }
  return jobs;
}

class Runner {
 public:
  explicit Runner(const TrialOptions& options) : options_(options) {}

  Result<HostTrial> Run() {
    LF_TRY(jobs_, TrialJobs());
    LF_TRY(const auto scratch, ScratchDir::Create());
    const Instant begun = clock_.Now();
    for (start_ = 0;; ++start_) {
      const double share = std::chrono::duration<double>(clock_.Now() - begun) /
                           std::chrono::duration<double>(options_.duration);
      if (start_ >= kLeastStarts && share >= 1) break;
      if (options_.on_progress) options_.on_progress(std::min(share, 1.0));
      // One database for all starts keeps the reference clock.
      LF_TRY_VOID(RunStart(scratch.path() / "trial.db"));
    }
    return std::move(trial_);
  }

 private:
  Status RunStart(const std::filesystem::path& database) {
    LF_TRY(const auto cluster,
           LocalCluster::Start({.programs = options_.programs, .database = database}));
    auto client = Client::Connect({.address = cluster.address()});
    if (!client) return Fail(client.error().kind, client.error().message);
    const auto workers = client->ListWorkers();
    if (!workers) return Fail(workers.error().kind, workers.error().message);
    for (const wire::WorkerInfo& worker : workers->workers) {
      trial_.peaks.push_back(worker.hardware.peaks.flop_per_second);
    }
    std::vector<std::size_t> all(jobs_.size());
    std::iota(all.begin(), all.end(), 0);
    LF_TRY_VOID(Measure(*client, all));
    for (const std::size_t kernel : all) {
      LF_TRY_VOID(Measure(*client, {kernel}));
    }
    return {};
  }

  Status Measure(Client& client, const std::vector<std::size_t>& kernels) {
    std::vector<JobSpec> jobs;
    for (const std::size_t kernel : kernels) jobs.push_back(jobs_[kernel]);
    const Instant asked = clock_.Now();
    TrialLatency latency;
    const auto done = client.Evaluate(jobs, [&](const Outcome& outcome) {
      latency.stages = outcome.evaluation.stages;
      if (!outcome.evaluation.ok()) {
        ++trial_.failed;
        return;
      }
      const Measurement& measurement = outcome.evaluation.measurement();
      latency.run_ms = measurement.elapsed_ns / kNsPerMs;
      trial_.figures.push_back({.kernel = kernels[outcome.job.index],
                                .start = start_,
                                .is_alone = kernels.size() == 1,
                                .elapsed_ns = measurement.elapsed_ns,
                                .low_ns = measurement.elapsed_low_ns,
                                .high_ns = measurement.elapsed_high_ns,
                                .grade = measurement.grade});
    });
    if (!done) return Fail(done.error().kind, done.error().message);
    latency.ms = static_cast<double>((clock_.Now() - asked).count()) / kNsPerMs;
    if (kernels.size() == 1) trial_.latencies.push_back(latency);
    return {};
  }

  const TrialOptions& options_;
  const SystemClock clock_;
  std::vector<JobSpec> jobs_;
  std::size_t start_ = 0;
  HostTrial trial_;
};

}  // namespace

TrialReport Assess(const HostTrial& trial) {
  TrialReport report{.figures = trial.figures.size(), .failed = trial.failed};
  const double each = trial.figures.empty() ? 0 : 1 / static_cast<double>(trial.figures.size());
  for (const TrialFigure& figure : trial.figures) {
    report.starts = std::max(report.starts, figure.start + 1);
    report.share[figure.grade] += each;
    if (figure.grade <= Grade::kB) report.good_share += each;
  }
  std::map<Grade, std::vector<double>> differences;
  std::vector<double> good;
  std::size_t held = 0;
  std::size_t pairs = 0;
  ForEachPair(trial.figures, [&](const TrialFigure& one, const TrialFigure& other) {
    const double difference = RelativeDifference(one.elapsed_ns, other.elapsed_ns);
    const Grade poorer = std::max(one.grade, other.grade);
    differences[poorer].push_back(difference);
    if (poorer <= Grade::kB) good.push_back(difference);
    if (other.grade > one.grade) return;
    if (one.low_ns <= other.elapsed_ns && other.elapsed_ns <= one.high_ns) ++held;
    ++pairs;
  });
  for (const auto& [grade, all] : differences) report.agreement[grade] = AgreementOf(all);
  report.good = AgreementOf(good);
  report.coverage = static_cast<double>(held) / static_cast<double>(pairs);
  const std::vector<double> alone_to_batch = AloneToBatch(trial.figures);
  report.alone_to_batch_p50 = Quantile(alone_to_batch, 0.5);
  report.alone_to_batch_max = Quantile(alone_to_batch, 1);
  AssessLatencies(trial.latencies, report);
  report.peak_range =
      (Quantile(trial.peaks, 1) - Quantile(trial.peaks, 0)) / Quantile(trial.peaks, 0.5);
  return report;
}

Result<HostTrial> RunTrial(const TrialOptions& options) { return Runner(options).Run(); }

}  // namespace loopfleet::client
