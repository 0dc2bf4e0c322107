// The cost of the store without a cluster: groups of null jobs of real row width (20 actions, 15
// samples), accepted and finished in durable transactions, at several sizes of the database, beside
// a plain table with the three usual indices.

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/peers/table_peer.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/scratch_dir.h"
#include "bench/rigs/unique_tree.h"
#include "common/base/random.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"

namespace loopfleet::bench {
namespace {

using storage::JobFinished;
using storage::JobsAccepted;
using storage::Store;
using storage::StoreReader;
using storage::Write;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint32_t kGroup = 1'000;  // jobs in a message, outcomes in a transaction
constexpr std::uint32_t kActions = 20;
constexpr std::size_t kSamples = 15;
constexpr std::uint32_t kMeasured = 200'000;  // rows per rate measurement
constexpr int kLookups = 20'000;
constexpr std::uint32_t kQueued = 1'000'000;

struct CpuSeconds {
  double user = 0;
  double kernel = 0;
};

CpuSeconds CpuSecondsNow() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {.user = seconds(usage.ru_utime), .kernel = seconds(usage.ru_stime)};
}

// Wall and processor time since construction.
class Stopwatch {
 public:
  double wall() const { return std::chrono::duration<double>(SteadyClock::now() - start_).count(); }
  double kernel() const { return CpuSecondsNow().kernel - cpu_.kernel; }
  double cpu() const { return CpuSecondsNow().user - cpu_.user + kernel(); }

 private:
  SteadyClock::time_point start_ = SteadyClock::now();
  CpuSeconds cpu_ = CpuSecondsNow();
};

JobSpec NullJob(std::uint64_t row, std::uint64_t benchmarks = 1) {
  JobSpec job{.source = looptree::BenchmarkUri{
                  fmt::format("benchmark://mm-v0/mm64_64_{}", 64 + row % benchmarks)}};
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

std::string WorkerOf(std::uint64_t row) { return fmt::format("bench-worker-{}", 10 + row % 10); }

// A job's outcome as made from a worker's report.
Outcome MeasuredOutcome(std::uint64_t row, std::uint64_t tree) {
  Measurement measurement{.elapsed_ns = 5000.125 + static_cast<double>(row % 1000) / 3,
                          .elapsed_low_ns = 4990.5,
                          .elapsed_high_ns = 5010.125,
                          .elapsed_min_ns = 4980.0 + static_cast<double>(row % 7) / 3,
                          .elapsed_mean_ns = 5001.0 / 3,
                          .spread = 0.004,
                          .grade = Grade::kA,
                          .iterations_per_sample = 12};
  for (std::size_t i = 0; i < kSamples; ++i) {
    measurement.samples_ns.push_back(5000.0 + static_cast<double>(row % 1000 + i) / 7);
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

// Batches of kGroup jobs, one after another: accepted in one transaction, finished in the next.
class Ingest {
 public:
  // `batches`: batches already stored, of kGroup rows each. `trees`: how many distinct trees the
  // rows have; 0: each row has its own. `benchmarks`: the same of benchmarks.
  explicit Ingest(Store& store, std::uint64_t batches, std::uint64_t trees = 0,
                  std::uint64_t benchmarks = 1)
      : store_(store),
        batch_(batches),
        row_(batches * kGroup),
        trees_(trees),
        benchmarks_(benchmarks) {}

  struct Cost {
    double wall = 0;
    double cpu = 0;
    double kernel = 0;  // of cpu
    std::uint64_t jobs = 0;
  };

  // The cost excludes constructing the jobs and outcomes.
  Result<Cost> Add(std::uint64_t jobs) {
    Cost cost;
    while (cost.jobs < jobs) {
      std::vector<Write> accept = {Accept()};
      std::vector<Write> finish = Finish();
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

  JobsAccepted Accept() {
    JobsAccepted accepted{.batch = {++batch_},
                          .request_id = Uuid::Random(),
                          .request_digest = std::string(16, 'd'),
                          .accepted_at = WallTime(Nanos(1'700'000'000'000'000'000))};
    for (std::uint32_t i = 0; i < kGroup; ++i) {
      accepted.jobs.push_back(NullJob(row_ + i, benchmarks_));
      accepted.replayed.push_back(storage::ReplayResult{.subject = UniqueTree(TreeOf(row_ + i))});
    }
    return accepted;
  }

 private:
  std::uint64_t TreeOf(std::uint64_t row) const { return trees_ == 0 ? row : row % trees_; }

  std::vector<Write> Finish() {
    std::vector<Write> writes;
    for (std::uint32_t i = 0; i < kGroup; ++i, ++row_) {
      Outcome outcome = MeasuredOutcome(row_, TreeOf(row_));
      outcome.job = {{batch_}, i};
      outcome.sequence = i + 1;
      writes.push_back(JobFinished{std::move(outcome)});
    }
    return writes;
  }

  Store& store_;
  std::uint64_t batch_ = 0;
  std::uint64_t row_ = 0;
  const std::uint64_t trees_;
  const std::uint64_t benchmarks_;
};

std::string SizeName(std::uint64_t rows) {
  return rows == 0           ? "empty"
         : rows >= 1'000'000 ? fmt::format("{} M", rows / 1'000'000)
                             : fmt::format("{} k", rows / 1'000);
}

void PrintRate(const std::string& name, double count, double wall, double cpu,
               const std::string& unit, const PeerRate& peer) {
  Print({.bench = "store",
         .name = name,
         .value = count / wall,
         .unit = unit,
         .peer = peer.text,
         .peer_value = peer.per_second,
         .details = {{"cpu_us_each", cpu / count * 1e6}}});
}

storage::ResultKey KeyFor(std::uint64_t row) {
  const Conditions conditions = SomeConditions();
  return {.subject = UniqueTree(row),
          .hardware_class = conditions.hardware.hardware_class,
          .compiler = conditions.compiler,
          .threads = conditions.threads,
          .cache = conditions.cache,
          .policy = conditions.policy};
}

// Looks up kLookups random rows of [from, from + rows). `expected`: whether they are stored.
Status LookUp(StoreReader& reader, const std::string& name, std::uint64_t from, std::uint64_t rows,
              bool expected, const PeerRate& peer) {
  SplitMix64 random(7);
  std::vector<storage::ResultKey> keys;
  for (int i = 0; i < kLookups; ++i) keys.push_back(KeyFor(from + random.Below(rows)));
  const Stopwatch watch;
  for (const auto& key : keys) {
    LF_TRY(const auto found, reader.FindResult(key));
    if ((found != nullptr) != expected) return Fail(ErrorKind::kCorrupt, "a lookup went wrong");
  }
  PrintRate(name, kLookups, watch.wall(), watch.cpu(), "lookups/s", peer);
  return {};
}

Status FetchPages(StoreReader& reader, const std::string& name) {
  constexpr std::uint32_t kPages = 50;
  const Stopwatch watch;
  for (std::uint32_t page = 0; page < kPages; ++page) {
    LF_TRY(const auto outcomes, reader.ReadOutcomes({1 + page}, 0, kGroup));
    if (outcomes.size() != kGroup) return Fail(ErrorKind::kCorrupt, "a page is not full");
  }
  PrintRate(name, kPages * kGroup, watch.wall(), watch.cpu(), "outcomes/s", {});
  return {};
}

// The cost of storing repeated jobs, as a coordinator does it: a transaction holds messages of
// several open batches, and the answers to the jobs of the previous transaction.
class Repeats {
 public:
  Repeats(Store& store, std::uint64_t first_batch, storage::StoredAnswer answer)
      : store_(store), first_batch_(first_batch), answer_(std::move(answer)) {}

  Result<Ingest::Cost> Add(std::uint64_t jobs) {
    Ingest::Cost cost;
    std::vector<Write> answers;
    for (; cost.jobs < jobs; ++round_) {
      std::vector<Write> writes = std::exchange(answers, {});
      for (std::uint64_t i = 0; i < kTogether; ++i) {
        const std::uint64_t message = round_ * kTogether + i;
        writes.emplace_back(Accept(message % kBatches, message / kBatches));
        answers.emplace_back(Answer(message % kBatches, message / kBatches));
      }
      const Stopwatch watch;
      LF_TRY_VOID(store_.Apply(writes));
      cost.wall += watch.wall();
      cost.cpu += watch.cpu();
      cost.kernel += watch.kernel();
      cost.jobs += kTogether * kGroup;
    }
    return cost;
  }

 private:
  static constexpr std::uint64_t kBatches = 16;
  static constexpr std::uint64_t kTogether = 8;  // messages in a transaction

  JobsAccepted Accept(std::uint64_t batch, std::uint64_t message) const {
    JobsAccepted accepted{.batch = {first_batch_ + batch},
                          .request_id = Uuid::Random(),
                          .new_batch = message == 0,
                          .closes_batch = false,
                          .first_index = static_cast<std::uint32_t>(message * kGroup)};
    for (std::uint32_t i = 0; i < kGroup; ++i) accepted.jobs.push_back(NullJob(i % 100));
    return accepted;
  }

  storage::JobsAnswered Answer(std::uint64_t batch, std::uint64_t message) const {
    storage::JobsAnswered answered{.finished_at = WallTime(Nanos(1'700'000'000'000'000'000))};
    const auto first = static_cast<std::uint32_t>(message * kGroup);
    for (std::uint32_t i = first; i < first + kGroup; ++i) {
      answered.jobs.push_back({.job = {{first_batch_ + batch}, i},
                               .sequence = i + std::uint64_t{1},
                               .queued = Nanos(1'000'000 + i),
                               .answer = answer_});
    }
    return answered;
  }

  Store& store_;
  std::uint64_t first_batch_;
  storage::StoredAnswer answer_;
  std::uint64_t round_ = 0;
};

Status MeasureRepeats() {
  LF_TRY(const auto scratch, CreateScratchDir());
  const std::filesystem::path& directory = scratch.path();
  LF_TRY(auto store, storage::SqliteStore::Open(directory / "store.db"));
  LF_TRY_VOID(Ingest(*store, 0).Add(kGroup));
  LF_TRY(const auto reader,
         storage::SqliteReader::Open(directory / "store.db", store->result_keys()));
  LF_TRY(auto answer, reader->FindResult(KeyFor(0)));
  if (answer == nullptr) return Fail(ErrorKind::kCorrupt, "a lookup went wrong");
  Repeats repeats(*store, 1'000'000'000, std::move(answer));
  LF_TRY(const auto cost, repeats.Add(2 * kMeasured));
  Print({.bench = "store",
         .name = "accept and answer from the store, 16 batches at a time",
         .value = static_cast<double>(cost.jobs) / cost.wall,
         .unit = "jobs/s",
         .details = {{"cpu_us_each", cost.cpu / static_cast<double>(cost.jobs) * 1e6},
                     {"kernel_us_each", cost.kernel / static_cast<double>(cost.jobs) * 1e6}}});
  return {};
}

// The cost of lookups that the newest of a tree's many results does not answer.
Status MeasureOneTree(std::uint64_t rows) {
  LF_TRY(const auto scratch, CreateScratchDir());
  const std::filesystem::path& directory = scratch.path();
  LF_TRY(auto store, storage::SqliteStore::Open(directory / "store.db"));
  Ingest ingest(*store, 0, 1);
  LF_TRY_VOID(ingest.Add(rows));
  LF_TRY(const auto reader,
         storage::SqliteReader::Open(directory / "store.db", store->result_keys()));
  storage::ResultKey precise = KeyFor(0);
  precise.precision = 1e-6;
  storage::ResultKey recent = KeyFor(0);
  recent.measured_since = MeasuredOutcome(rows, 0).finished_at;
  constexpr int kEach = 10;
  for (const auto& [name, key] :
       {std::pair{"more precise than any result", precise}, {"newer than any result", recent}}) {
    const Stopwatch watch;
    for (int i = 0; i < kEach; ++i) {
      LF_TRY(const auto found, reader->FindResult(key));
      if (found != nullptr) return Fail(ErrorKind::kCorrupt, "a lookup went wrong");
    }
    Print({.bench = "store",
           .name = fmt::format("look up, {}, {} results of one tree", name, rows),
           .value = watch.wall() / kEach * 1e3,
           .unit = "ms",
           .details = {{"cpu_ms_each", watch.cpu() / kEach * 1e3}}});
  }
  return {};
}

// How long other writes wait when a worker's results are suspected: `rows` results are new enough,
// one of ten is the worker's.
Status MeasureSuspicion(std::uint64_t rows) {
  LF_TRY(const auto scratch, CreateScratchDir());
  const std::filesystem::path& directory = scratch.path();
  LF_TRY(auto store, storage::SqliteStore::Open(directory / "store.db"));
  Ingest ingest(*store, 0);
  LF_TRY_VOID(ingest.Add(rows));
  const std::vector<Write> suspected = {
      storage::ResultsSuspected{.worker = WorkerOf(0), .reason = "its canaries drifted"}};
  const Stopwatch total;
  LF_TRY_VOID(store->Apply(suspected));
  double longest = total.wall();
  while (store->HasMoreToFlag()) {
    const Stopwatch watch;
    LF_TRY_VOID(store->FlagMore());
    longest = std::max(longest, watch.wall());
  }
  Print({.bench = "store",
         .name = fmt::format("longest transaction of a suspicion, {} results", SizeName(rows)),
         .value = longest * 1e3,
         .unit = "ms",
         .details = {{"ms_in_all", total.wall() * 1e3}, {"cpu_ms_in_all", total.cpu() * 1e3}}});
  return {};
}

Status MeasureIngest(const std::vector<std::uint64_t>& sizes) {
  LF_TRY(const auto scratch, CreateScratchDir());
  const std::filesystem::path& directory = scratch.path();
  LF_TRY(auto store, storage::SqliteStore::Open(directory / "store.db"));
  LF_TRY(auto peer, TablePeer::Open(directory / "peer.db"));
  Ingest ingest(*store, 0);
  std::uint64_t rows = 0;
  for (const std::uint64_t size : sizes) {
    if (size > rows) {
      LF_TRY_VOID(ingest.Add(size - rows));
      LF_TRY_VOID(peer.Insert(size - rows, kGroup));
      rows = size;
    }
    LF_TRY(const auto cost, ingest.Add(kMeasured));
    LF_TRY(const double peer_rate, peer.Insert(kMeasured, kGroup));
    rows += kMeasured;
    const PeerRate peer_ingest{
        .text = "one table of results with three indices, the same groups, synchronous=FULL",
        .per_second = peer_rate};
    PrintRate(fmt::format("accept and finish, {}", SizeName(size)), static_cast<double>(cost.jobs),
              cost.wall, cost.cpu, "jobs/s", peer_ingest);
    LF_TRY(const auto reader,
           storage::SqliteReader::Open(directory / "store.db", store->result_keys()));
    LF_TRY(const double peer_lookups, peer.LookUp(kLookups));
    const PeerRate peer_lookup{.text = "its index by key", .per_second = peer_lookups};
    const std::string at = SizeName(rows);
    LF_TRY_VOID(LookUp(*reader, "look up, stored, " + at, 0, rows, true, peer_lookup));
    LF_TRY_VOID(LookUp(*reader, "look up, one of 100, " + at, 0, 100, true, peer_lookup));
    LF_TRY_VOID(LookUp(*reader, "look up, never stored, " + at, std::uint64_t{1} << 40, rows, false,
                       peer_lookup));
    LF_TRY_VOID(FetchPages(*reader, "fetch pages of 1,000, " + at));
  }
  return {};
}

Status MeasureRecovery() {
  LF_TRY(const auto scratch, CreateScratchDir());
  const std::filesystem::path& directory = scratch.path();
  {
    LF_TRY(auto store, storage::SqliteStore::Open(directory / "store.db"));
    Ingest ingest(*store, 0);
    Stopwatch watch;
    double wall = 0;
    double cpu = 0;
    for (std::uint32_t i = 0; i < kQueued / kGroup; ++i) {
      const std::vector<Write> accept = {ingest.Accept()};
      watch = {};
      LF_TRY_VOID(store->Apply(accept));
      wall += watch.wall();
      cpu += watch.cpu();
    }
    PrintRate("accept alone", kQueued, wall, cpu, "jobs/s", {});
  }
  const Stopwatch watch;
  LF_TRY(auto store, storage::SqliteStore::Open(directory / "store.db"));
  LF_TRY(const auto recovery, store->Recover());
  if (recovery.jobs.size() != kQueued) return Fail(ErrorKind::kCorrupt, "jobs are missing");
  Print({.bench = "store",
         .name = "open and recover 1 M queued jobs",
         .value = watch.wall(),
         .unit = "s",
         .details = {{"cpu_s", watch.cpu()}}});
  return {};
}

// How the cost of a job changes while `rows` rows of so many benchmarks are added, without a peer
// and without lookups. An existing file is extended; the file is kept.
Status MeasureGrowth(std::uint64_t rows, const std::filesystem::path& file,
                     std::uint64_t benchmarks) {
  LF_TRY(auto store, storage::SqliteStore::Open(file));
  LF_TRY(const auto recovery, store->RecoverBatches());
  const std::uint64_t batches = recovery.next_batch - 1;
  Ingest ingest(*store, batches, /*trees=*/0, benchmarks);
  for (std::uint64_t row = 0; row < rows; row += kMeasured) {
    LF_TRY(const auto cost, ingest.Add(kMeasured));
    const auto jobs = static_cast<double>(cost.jobs);
    const auto there = static_cast<double>(batches * kGroup + row + kMeasured);
    Print({.bench = "store",
           .name = fmt::format("accept and finish, from {} rows", batches * kGroup + row),
           .value = jobs / cost.wall,
           .unit = "jobs/s",
           .details = {{"cpu_us_each", cost.cpu / jobs * 1e6},
                       {"kernel_us_each", cost.kernel / jobs * 1e6},
                       {"file_bytes_each",
                        static_cast<double>(std::filesystem::file_size(file)) / there}}});
  }
  return {};
}

// Measures at three sizes: 0, a tenth of `rows`, and `rows`.
Status Run(std::uint64_t rows) {
  LF_TRY_VOID(MeasureRecovery());
  LF_TRY_VOID(MeasureIngest({0, rows / 10, rows}));
  return MeasureRepeats();
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  using namespace loopfleet::bench;
  const std::string_view first = argc > 1 ? argv[1] : "1000000";
  const std::string_view what = argc > 2 ? argv[2] : "";
  const bool repeats = argc == 2 && first == "repeats";
  const std::uint64_t rows = std::strtoull(first.data(), nullptr, 10);
  const bool one_tree = argc == 3 && what == "of-one-tree";
  const bool suspected = argc == 3 && what == "suspected";
  const bool growth = (argc == 4 || argc == 5) && what == "into";
  const std::uint64_t benchmarks = argc == 5 ? std::strtoull(argv[4], nullptr, 10) : 1;
  if ((rows == 0 && !repeats) || benchmarks == 0 ||
      !(argc <= 2 || one_tree || suspected || growth)) {
    fmt::print(
        stderr,
        "usage: bench_store [ROWS]            (1000000; the long run is 10000000)\n"
        "       bench_store ROWS into FILE [BENCHMARKS]\n"
        "                              the cost of a job every 200000 rows; FILE is made, or gone "
        "on with, and stays\n"
        "       bench_store ROWS of-one-tree  lookups that the newest result does not answer\n"
        "       bench_store repeats           what the store answers alone\n");
    return 2;
  }
  const auto status = growth      ? MeasureGrowth(rows, argv[3], benchmarks)
                      : one_tree  ? MeasureOneTree(rows)
                      : suspected ? MeasureSuspicion(rows)
                      : repeats   ? MeasureRepeats()
                                  : Run(rows);
  if (!status) {
    fmt::print(stderr, "bench store: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
