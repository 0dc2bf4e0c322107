#include "bench/rigs/synthetic_rows.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "bench/rigs/stopwatch.h"
#include "bench/rigs/unique_tree.h"
#include "common/base/random.h"

namespace loopfleet::bench {
namespace {

constexpr std::uint32_t kActions = 20;
constexpr std::size_t kSamples = 15;

std::string BenchmarkOf(std::uint64_t row, std::uint64_t benchmarks) {
  return fmt::format("benchmark://mm-v0/mm64_64_{}", 64 + row % benchmarks);
}

Conditions SomeConditions() {
  return {.hardware = {.hardware_class = "cpu:AuthenticAMD:25.1.1:avx2",
                       .model = "AMD EPYC 7B13",
                       .isa = "avx2",
                       .microcode = "0xa0011d5",
                       .host = "bench",
                       .kernel = "Linux"},
          .compiler = {.llvm = "19.1.7", .tier = "general", .revision = "1"},
          .policy = "fixed15x60us",
          .isolation = "process+rlimits"};
}

}  // namespace

JobSpec JobOfRow(std::uint64_t row, std::uint64_t benchmarks) {
  JobSpec job{.source = looptree::BenchmarkUri{BenchmarkOf(row, benchmarks)}};
  SplitMix64 random(row);
  while (job.actions.size() < kActions) {
    switch (random.Below(4)) {
      case 0: job.actions.emplace_back(looptree::Down{}); break;
      case 1: job.actions.emplace_back(looptree::Up{}); break;
      case 2: job.actions.emplace_back(looptree::SwapDown{}); break;
      default: job.actions.emplace_back(looptree::Split{2}); break;
    }
  }
  return job;
}

std::string WorkerOf(std::uint64_t row) { return fmt::format("bench-worker-{}", 10 + row % 10); }

Outcome MeasuredOutcome(std::uint64_t row, std::uint64_t tree) {
  // Rows of one benchmark differ, too: no number of benchmarks in use is a multiple of this prime.
  const double elapsed_ns = 5000.125 + static_cast<double>(row % 997) / 3;
  Measurement measurement{.elapsed_ns = elapsed_ns,
                          .elapsed_low_ns = elapsed_ns - 9.625,
                          .elapsed_high_ns = elapsed_ns + 10,
                          .elapsed_min_ns = elapsed_ns - 20 + static_cast<double>(row % 7) / 3,
                          .elapsed_mean_ns = elapsed_ns + 1.0 / 3,
                          .spread = 0.004,
                          .grade = Grade::kA,
                          .iterations_per_sample = 12};
  for (std::size_t i = 0; i < kSamples; ++i) {
    measurement.samples_ns.push_back(elapsed_ns + static_cast<double>(i) / 7);
  }
  measurement.sample_flags.assign(kSamples, kSampleAccepted);
  Outcome outcome{.attempts = 1,
                  .worker = WorkerOf(row),
                  .finished_at = WallTime(Nanos(1'700'000'000'000'000'000)) +
                                 Nanos(static_cast<std::int64_t>(row) * 1000)};
  outcome.evaluation = {.verdict = std::move(measurement),
                        .subject = UniqueTree(tree),
                        .flop_count = 524'288,
                        .conditions = SomeConditions(),
                        .scratch_bytes = 4096,
                        .code_hash = "0123456789abcdef0123456789abcdef"};
  for (const Stage stage : kStages) outcome.evaluation.stages[stage] = Nanos(100'000 + row % 1000);
  return outcome;
}

storage::ResultKey KeyOfTree(std::uint64_t tree) {
  const Conditions conditions = SomeConditions();
  return {.subject = UniqueTree(tree),
          .hardware_class = conditions.hardware.hardware_class,
          .compiler = conditions.compiler,
          .threads = conditions.threads,
          .cache = conditions.cache,
          .policy = conditions.policy};
}

ProgramKey ProgramOfRow(std::uint64_t row, std::uint64_t benchmarks) {
  return ProgramKey::Of(BenchmarkOf(row, benchmarks));
}

Ingest::Ingest(storage::Store& store, const Options& options)
    : store_(store), options_(options), batch_(options.batches), row_(options.batches * kGroup) {}

Result<Ingest::Cost> Ingest::Add(std::uint64_t jobs) {
  Cost cost;
  while (cost.jobs < jobs) {
    const std::vector<storage::Write> accept = {Accept()};
    const std::vector<storage::Write> finish = Finish();
    const Stopwatch watch;
    LF_TRY_VOID(store_.Apply(accept));
    LF_TRY_VOID(store_.Apply(finish));
    cost.wall += watch.wall();
    cost.cpu += watch.cpu();
    cost.kernel += watch.kernel();
    cost.jobs += kGroup;
  }
  return cost;
}

storage::JobsAccepted Ingest::Accept() {
  storage::JobsAccepted accepted{.batch = {++batch_},
                                 .request_id = Uuid::Random(),
                                 .request_digest = std::string(16, 'd'),
                                 .accepted_at = WallTime(Nanos(1'700'000'000'000'000'000))};
  for (std::uint32_t i = 0; i < kGroup; ++i) {
    accepted.jobs.push_back(JobOfRow(row_ + i, options_.benchmarks));
    accepted.replayed.push_back(storage::ReplayResult{.subject = UniqueTree(TreeOf(row_ + i))});
  }
  return accepted;
}

std::vector<storage::Write> Ingest::Finish() {
  std::vector<storage::Write> writes;
  for (std::uint32_t i = 0; i < kGroup; ++i, ++row_) {
    storage::JobFinished finished{.outcome = MeasuredOutcome(row_, TreeOf(row_))};
    finished.outcome.job = {{batch_}, i};
    finished.outcome.sequence = i + 1;
    if (options_.has_programs) finished.program = ProgramOfRow(row_, options_.benchmarks);
    writes.emplace_back(std::move(finished));
  }
  return writes;
}

}  // namespace loopfleet::bench
