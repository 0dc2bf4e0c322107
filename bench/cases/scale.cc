// What a store of so many rows costs: rows a second, a look-up, a start, bytes a row and the view
// of the best. SQLite as a coordinator writes it, beside one plain table with the usual indices;
// and look-ups in PostgreSQL. scale.py runs it, and measures the rest of PostgreSQL.

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bench/peers/table_peer.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "bench/rigs/synthetic_rows.h"
#include "client/cli/text/progress_bar.h"
#include "common/base/random.h"
#include "storage/postgres/shared_results.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"

namespace loopfleet::bench {
namespace {

constexpr int kLookups = 20'000;
constexpr std::uint32_t kOneAtATime = 1'000;
constexpr std::uint64_t kEntered = 64;
constexpr std::size_t kAskedTogether = 1'000;
constexpr std::uint64_t kMostAtOnce = 20'000;  // rows between two redraws of the bar
constexpr char kPlain[] = "one plain table with indices by tree, by job and by time";

struct Options {
  std::filesystem::path folder;
  std::string url;
  std::uint64_t rows = 0;
  std::uint64_t benchmarks = 10'000;

  // The last rows, which are timed.
  std::uint64_t timed() const {
    return std::max<std::uint64_t>(kGroup,
                                   std::min<std::uint64_t>(rows / 10 / kGroup * kGroup, 200'000));
  }
  std::filesystem::path store() const { return folder / "store.db"; }
  std::filesystem::path plain() const { return folder / "plain.db"; }
};

void PrintLine(const Options& options, const std::string& what, double value,
               const std::string& unit, double peer, const nlohmann::ordered_json& details = {}) {
  Print({.bench = "scale",
         .name = fmt::format("{} rows, SQLite: {}", options.rows, what),
         .value = value,
         .unit = unit,
         .peer = kPlain,
         .peer_value = peer,
         .details = details});
}

// Adds rows by `add`, which says the seconds that some took; returns those of the last ones.
template <typename Add>
Result<double> Fill(const Options& options, const Add& add) {
  client::ProgressBar bar;
  double seconds = 0;
  for (std::uint64_t row = 0; row < options.rows;) {
    const std::uint64_t untimed = options.rows - options.timed();
    const std::uint64_t end = row < untimed ? untimed : options.rows;
    const std::uint64_t rows = std::min(end - row, kMostAtOnce);
    LF_TRY(const double took, add(rows));
    if (row >= untimed) seconds += took;
    row += rows;
    bar.Show({.done = static_cast<std::uint32_t>(row),
              .total = static_cast<std::uint32_t>(options.rows)});
  }
  return seconds;
}

Status MeasureIngest(const Options& options) {
  double here = 0;
  {
    LF_TRY(const auto store, storage::SqliteStore::Open(options.store()));
    Ingest ingest(*store, {.benchmarks = options.benchmarks, .has_programs = true});
    LF_TRY(here, Fill(options, [&](std::uint64_t rows) -> Result<double> {
             LF_TRY(const auto cost, ingest.Add(rows));
             return cost.wall;
           }));
  }
  LF_TRY(auto plain, TablePeer::Open(options.plain(), options.benchmarks));
  LF_TRY(const double there, Fill(options, [&](std::uint64_t rows) -> Result<double> {
           LF_TRY(const double rate, plain.Insert(rows, kGroup));
           return static_cast<double>(rows) / rate;
         }));
  const auto timed = static_cast<double>(options.timed());
  PrintLine(options, "ingest of the last rows", timed / here, "1/s", timed / there,
            {{"timed", options.timed()}});
  return {};
}

Status MeasureSize(const Options& options) {
  const auto each = [&](const std::filesystem::path& file) {
    return static_cast<double>(std::filesystem::file_size(file)) /
           static_cast<double>(options.rows);
  };
  PrintLine(options, "bytes a row", each(options.store()), "B", each(options.plain()));
  return {};
}

// Opens both until each has given its first answer, then asks for more.
Status MeasureReads(const Options& options) {
  SplitMix64 random(7);
  const auto some_key = [&] { return KeyOfTree(random.Below(options.rows)); };

  Stopwatch start;
  LF_TRY(const auto store, storage::SqliteStore::Open(options.store()));
  LF_TRY_VOID(store->RecoverBatches());
  LF_TRY(const auto reader, store->OpenReader());
  LF_TRY(const auto first, reader->FindResult(some_key()));
  const double started = start.wall();
  start = {};
  LF_TRY(auto plain, TablePeer::Open(options.plain(), options.benchmarks));
  LF_TRY_VOID(plain.LookUp(1));
  PrintLine(options, "start until the first answer", started, "s", start.wall());

  std::vector<storage::ResultKey> keys;
  for (int i = 0; i < kLookups; ++i) keys.push_back(some_key());
  const Stopwatch asked;
  for (const auto& key : keys) {
    LF_TRY(const auto found, reader->FindResult(key));
    if (found == nullptr) return Fail(ErrorKind::kCorrupt, "a stored result was not found");
  }
  const double here = asked.wall();
  LF_TRY(const double there, plain.LookUp(kLookups));
  PrintLine(options, "look-up of any row", here / kLookups * 1e6, "us", 1e6 / there);

  LF_TRY(const auto people, storage::Connection::Open(options.store(), storage::Access::kReadOnly,
                                                      storage::kBusyWait));
  const Stopwatch viewed;
  std::uint64_t best = 0;
  {
    LF_TRY(auto row, people->Start("SELECT * FROM v_best"));
    while (true) {
      LF_TRY(const bool more, row.Next());
      if (!more) break;
      ++best;
    }
  }
  const double view = viewed.wall();
  const Stopwatch grouped;
  LF_TRY(const auto plain_best, plain.CountBest());
  PrintLine(options, "all of v_best", view * 1e3, "ms", grouped.wall() * 1e3,
            {{"benchmarks", best}, {"plain_benchmarks", plain_best}});

  // Of a commit, which here has kGroup rows, the first figures alone enter the best schedules.
  const auto some_entered_row = [&] {
    return random.Below(options.rows / kGroup) * kGroup + random.Below(kEntered);
  };
  const auto conditions = *MeasuredOutcome(0, 0).evaluation.conditions;
  const Stopwatch programs;
  for (std::uint32_t i = 0; i < kOneAtATime; ++i) {
    LF_TRY(const auto fastest,
           reader->FindBest({.program = ProgramOfRow(some_entered_row(), options.benchmarks),
                             .threads = conditions.threads,
                             .cache = conditions.cache}));
    if (fastest.empty()) return Fail(ErrorKind::kCorrupt, "a program has no best schedule");
  }
  Print({.bench = "scale",
         .name = fmt::format("{} rows, SQLite: the best of a program", options.rows),
         .value = programs.wall() / kOneAtATime * 1e6,
         .unit = "us"});
  return {};
}

Status MeasureSqlite(const Options& options) {
  LF_TRY_VOID(MeasureIngest(options));
  LF_TRY_VOID(MeasureSize(options));
  return MeasureReads(options);
}

// As a coordinator asks for what others measured: a submission's keys together, or one.
Status MeasurePostgres(const Options& options) {
  Stopwatch watch;
  LF_TRY(const auto shared, storage::SharedResults::Open(options.url, Uuid::Random()));
  SplitMix64 random(7);
  const auto ask = [&](std::size_t together) -> Status {
    std::vector<storage::ResultKey> keys;
    for (std::size_t i = 0; i < together; ++i) {
      keys.push_back(KeyOfTree(random.Below(options.rows)));
    }
    LF_TRY(const auto answers, shared->Find(keys));
    if (std::ranges::count(answers, nullptr) > 0) {
      return Fail(ErrorKind::kCorrupt, "a stored result was not found");
    }
    return {};
  };
  const auto print = [&](const std::string& what, double value, const std::string& unit) {
    Print({.bench = "scale",
           .name = fmt::format("{} rows, PostgreSQL: {}", options.rows, what),
           .value = value,
           .unit = unit});
  };
  LF_TRY_VOID(ask(1));
  print("connect until the first answer", watch.wall(), "s");
  watch = {};
  for (std::size_t i = 0; i < kOneAtATime; ++i) LF_TRY_VOID(ask(1));
  print("look-up of any row, one at a time", watch.wall() / kOneAtATime * 1e6, "us");
  watch = {};
  constexpr int kTimes = kLookups / static_cast<int>(kAskedTogether);
  for (int i = 0; i < kTimes; ++i) LF_TRY_VOID(ask(kAskedTogether));
  print("look-up of any row, 1,000 at a time", watch.wall() / kLookups * 1e6, "us");
  return {};
}

Status Run(int argc, char** argv) {
  Options options;
  CLI::App app("What a store of so many rows costs", "bench_scale");
  app.require_subcommand(1);
  app.add_option("--rows", options.rows)
      ->required()
      ->check(CLI::Range(std::uint64_t{kGroup}, std::uint64_t{4'000'000'000}));
  app.add_option("--benchmarks", options.benchmarks, "different ones")->check(CLI::PositiveNumber);
  auto* sqlite = app.add_subcommand("sqlite", "makes store.db and plain.db in FOLDER");
  sqlite->add_option("FOLDER", options.folder)->required()->check(CLI::ExistingDirectory);
  auto* postgres = app.add_subcommand("postgres", "asks the database at URL, which has the rows");
  postgres->add_option("URL", options.url)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  options.rows = options.rows / kGroup * kGroup;
  return sqlite->parsed() ? MeasureSqlite(options) : MeasurePostgres(options);
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  const auto status = loopfleet::bench::Run(argc, argv);
  if (status) return 0;
  fmt::print(stderr, "bench scale: {}\n", status.error().message);
  return 1;
}
