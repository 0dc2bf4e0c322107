// The cost of the store without a cluster: groups of null jobs of real row width (20 actions, 15
// samples), accepted and finished in durable transactions, at several sizes of the database, beside
// a plain table with the three usual indices.

#include <fmt/format.h>
#include <sqlite3.h>

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
#include "bench/rigs/stopwatch.h"
#include "bench/rigs/synthetic_rows.h"
#include "common/base/random.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"

namespace loopfleet::bench {
namespace {

using storage::JobsAccepted;
using storage::Store;
using storage::StoreReader;
using storage::Write;

constexpr std::uint32_t kMeasured = 200'000;  // rows per rate measurement
constexpr int kLookups = 20'000;
constexpr std::uint32_t kQueued = 1'000'000;

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

// Looks up kLookups random rows of [from, from + rows). `expected`: whether they are stored.
Status LookUp(StoreReader& reader, const std::string& name, std::uint64_t from, std::uint64_t rows,
              bool expected, const PeerRate& peer) {
  SplitMix64 random(7);
  std::vector<storage::ResultKey> keys;
  for (int i = 0; i < kLookups; ++i) keys.push_back(KeyOfTree(from + random.Below(rows)));
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
    LF_TRY(const auto outcomes, reader.ReadOutcomes({1 + page}, 0, {.max_rows = kGroup}));
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
    for (std::uint32_t i = 0; i < kGroup; ++i) accepted.jobs.push_back(JobOfRow(i % 100));
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
  LF_TRY_VOID(Ingest(*store, {}).Add(kGroup));
  LF_TRY(const auto reader,
         storage::SqliteReader::Open(directory / "store.db", store->result_keys()));
  LF_TRY(auto answer, reader->FindResult(KeyOfTree(0)));
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
  Ingest ingest(*store, {.trees = 1});
  LF_TRY_VOID(ingest.Add(rows));
  LF_TRY(const auto reader,
         storage::SqliteReader::Open(directory / "store.db", store->result_keys()));
  storage::ResultKey precise = KeyOfTree(0);
  precise.precision = 1e-6;
  storage::ResultKey recent = KeyOfTree(0);
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
  Ingest ingest(*store, {});
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
  Ingest ingest(*store, {});
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
    Ingest ingest(*store, {});
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
  Ingest ingest(*store, {.batches = batches, .benchmarks = benchmarks});
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
