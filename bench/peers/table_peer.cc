#include "bench/peers/table_peer.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "bench/rigs/stopwatch.h"
#include "common/base/random.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::array<std::uint64_t, 2> KeyOf(std::uint64_t row) {
  SplitMix64 random(row);
  return {random.Next(), random.Next()};
}

}  // namespace

Result<TablePeer> TablePeer::Open(const std::filesystem::path& path, std::uint64_t benchmarks) {
  TablePeer peer;
  peer.benchmarks_ = benchmarks;
  sqlite3* database = nullptr;
  const int code = sqlite3_open(path.c_str(), &database);
  peer.database_.reset(database);
  if (code != SQLITE_OK) return Fail(ErrorKind::kSystem, sqlite3_errmsg(database));
  LF_TRY_VOID(peer.Run(R"sql(
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
    PRAGMA wal_autocheckpoint = 8192;
    CREATE TABLE IF NOT EXISTS results (id INTEGER PRIMARY KEY, batch INTEGER, idx INTEGER, tree_key BLOB,
                          benchmark TEXT, actions TEXT, elapsed_ns REAL, gflops REAL, samples BLOB,
                          worker TEXT, finished_at INTEGER);
    CREATE INDEX IF NOT EXISTS by_key ON results (tree_key);
    CREATE INDEX IF NOT EXISTS by_job ON results (batch, idx);
    CREATE INDEX IF NOT EXISTS by_time ON results (finished_at);
  )sql"));
  LF_TRY(peer.rows_, peer.Number("SELECT coalesce(max(id) + 1, 0) FROM results"));
  LF_TRY(peer.insert_, peer.Prepare("INSERT INTO results VALUES (?,?,?,?,?,?,?,?,?,?,?)"));
  LF_TRY(peer.look_up_, peer.Prepare("SELECT * FROM results WHERE tree_key = ?"));
  return peer;
}

Status TablePeer::Run(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return Fail(ErrorKind::kSystem, sqlite3_errmsg(database_.get()));
}

Result<std::unique_ptr<sqlite3_stmt, TablePeer::Close>> TablePeer::Prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql, -1, &statement, nullptr) != SQLITE_OK) {
    return Fail(ErrorKind::kSystem, sqlite3_errmsg(database_.get()));
  }
  return std::unique_ptr<sqlite3_stmt, Close>(statement);
}

Result<std::uint64_t> TablePeer::Number(const char* sql) {
  LF_TRY(const auto statement, Prepare(sql));
  if (sqlite3_step(statement.get()) == SQLITE_ROW) {
    return static_cast<std::uint64_t>(sqlite3_column_int64(statement.get(), 0));
  }
  return Fail(ErrorKind::kSystem, sqlite3_errmsg(database_.get()));
}

Result<std::uint64_t> TablePeer::CountBest() {
  return Number(
      "SELECT count(gflops) FROM "
      "(SELECT benchmark, max(gflops) AS gflops, actions FROM results GROUP BY benchmark)");
}

Result<double> TablePeer::Insert(std::uint64_t rows, std::uint32_t rows_per_transaction) {
  constexpr std::array<double, 15> kSamples{5000.25};
  constexpr char kActions[] =
      "down,up,swap_down,split_2,down,up,swap_down,split_2,down,up,"
      "swap_down,split_2,down,up,swap_down,split_2,down,up,down,up";
  const auto start = SteadyClock::now();
  for (std::uint64_t done = 0; done < rows;) {
    LF_TRY_VOID(Run("BEGIN IMMEDIATE"));
    for (std::uint32_t i = 0; i < rows_per_transaction && done < rows; ++i, ++done, ++rows_) {
      sqlite3_stmt* row = insert_.get();
      const auto key = KeyOf(rows_);
      const auto number = static_cast<sqlite3_int64>(rows_);
      sqlite3_bind_int64(row, 1, number);
      sqlite3_bind_int64(row, 2, number / rows_per_transaction);
      sqlite3_bind_int64(row, 3, number % rows_per_transaction);
      sqlite3_bind_blob(row, 4, key.data(), sizeof key, SQLITE_STATIC);
      const std::string benchmark =
          fmt::format("benchmark://mm-v0/mm64_64_{}", 64 + rows_ % benchmarks_);
      sqlite3_bind_text(row, 5, benchmark.c_str(), -1, SQLITE_STATIC);
      sqlite3_bind_text(row, 6, kActions, sizeof kActions - 1, SQLITE_STATIC);
      sqlite3_bind_double(row, 7, 5000.25 + static_cast<double>(rows_ % 1000));
      sqlite3_bind_double(row, 8, 104.8);
      sqlite3_bind_blob(row, 9, kSamples.data(), sizeof kSamples, SQLITE_STATIC);
      sqlite3_bind_text(row, 10, "bench-worker-17", -1, SQLITE_STATIC);
      sqlite3_bind_int64(row, 11, 1'700'000'000'000'000'000 + number * 1000);
      const int code = sqlite3_step(row);
      sqlite3_reset(row);
      if (code != SQLITE_DONE) return Fail(ErrorKind::kSystem, sqlite3_errmsg(database_.get()));
    }
    LF_TRY_VOID(Run("COMMIT"));
  }
  return static_cast<double>(rows) / Since(start);
}

Result<double> TablePeer::LookUp(int count) {
  SplitMix64 random(7);
  const auto start = SteadyClock::now();
  for (int i = 0; i < count; ++i) {
    const auto key = KeyOf(random.Below(rows_));
    sqlite3_bind_blob(look_up_.get(), 1, key.data(), sizeof key, SQLITE_STATIC);
    const int code = sqlite3_step(look_up_.get());
    sqlite3_reset(look_up_.get());
    if (code != SQLITE_ROW) return Fail(ErrorKind::kSystem, "the peer lost a row");
  }
  return count / Since(start);
}

}  // namespace loopfleet::bench
