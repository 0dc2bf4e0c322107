#include "bench/peers/disk_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/rigs/scratch_dir.h"
#include "common/base/unique_fd.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

class BareDatabase {
 public:
  static Result<BareDatabase> Create(const std::filesystem::path& path) {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open(path.c_str(), &opened);
    BareDatabase database(opened);
    if (code != SQLITE_OK) return database.Failed();
    return database;
  }
  Status Run(const std::string& sql) {
    if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK)
      return {};
    return Failed();
  }
  // The first column of each row.
  Result<std::vector<std::string>> Texts(const std::string& sql) {
    std::vector<std::string> texts;
    const auto add = [](void* into, int, char** row, char**) {
      static_cast<std::vector<std::string>*>(into)->emplace_back(row[0]);
      return 0;
    };
    if (sqlite3_exec(database_.get(), sql.c_str(), add, &texts, nullptr) != SQLITE_OK)
      return Failed();
    return texts;
  }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  explicit BareDatabase(sqlite3* database) : database_(database) {}
  std::unexpected<Error> Failed() {
    return Fail(ErrorKind::kSystem, sqlite3_errmsg(database_.get()));
  }
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace

Result<double> DiskSyncMicroseconds() {
  constexpr int kTimes = 1'000;
  LF_TRY(const auto directory, CreateScratchDir());
  const UniqueFd file(
      ::open((directory.path() / "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::string page(4096, 'x');
  std::vector<double> took_us;
  for (int i = 0; i < kTimes; ++i) {
    const auto start = SteadyClock::now();
    const ssize_t written = ::pwrite(file.get(), page.data(), page.size(), i * 4096);
    if (written != 4096 || ::fdatasync(file.get()) != 0) {
      return Fail(ErrorKind::kSystem, "cannot write and sync a file here");
    }
    took_us.push_back(
        std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count());
  }
  std::ranges::nth_element(took_us, took_us.begin() + kTimes / 2);
  return took_us[kTimes / 2];
}

Result<double> BareInsertRate(const std::filesystem::path& database, std::uint32_t batches,
                              std::uint32_t message, std::uint32_t rows_per_commit) {
  LF_TRY(const auto directory, CreateScratchDir());
  LF_TRY(BareDatabase bare, BareDatabase::Create(directory.path() / "bare.db"));
  LF_TRY_VOID(bare.Run(R"sql(
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
    PRAGMA wal_autocheckpoint = 8192; PRAGMA ignore_check_constraints = ON)sql"));
  LF_TRY_VOID(bare.Run(fmt::format("ATTACH '{}' AS source", database.string())));
  LF_TRY(const auto tables, bare.Texts("SELECT sql FROM source.sqlite_schema WHERE type = 'table' "
                                       "AND name IN ('jobs', 'outcomes')"));
  for (const std::string& table : tables) LF_TRY_VOID(bare.Run(table));
  LF_TRY(const auto ids, bare.Texts(fmt::format(
                             "SELECT id FROM source.batches ORDER BY id DESC LIMIT {}", batches)));
  LF_TRY(const auto counts,
         bare.Texts(fmt::format("SELECT job_count FROM source.batches ORDER BY id DESC LIMIT {}",
                                batches)));
  const auto start = SteadyClock::now();
  LF_TRY_VOID(bare.Run("BEGIN IMMEDIATE"));
  std::uint64_t jobs = 0;
  std::uint32_t uncommitted = 0;
  bool is_more = true;
  for (std::uint32_t first = 0; is_more; first += message) {
    is_more = false;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto count = static_cast<std::uint32_t>(std::stoul(counts[i]));
      if (first >= count) continue;
      const std::uint32_t last = std::min(first + message, count);
      if (last < count) is_more = true;
      LF_TRY_VOID(bare.Run(fmt::format(
          "INSERT INTO main.jobs SELECT * FROM source.jobs WHERE batch = {0} AND idx >= {1} "
          "AND idx < {2};"
          "INSERT INTO main.outcomes SELECT * FROM source.outcomes WHERE batch = {0} "
          "AND sequence > {1} AND sequence <= {2}",
          ids[i], first, last)));
      jobs += last - first;
      uncommitted += 2 * (last - first);
      if (uncommitted < rows_per_commit) continue;
      uncommitted = 0;
      LF_TRY_VOID(bare.Run("COMMIT; BEGIN IMMEDIATE"));
    }
  }
  LF_TRY_VOID(bare.Run("COMMIT"));
  const std::chrono::duration<double> took = SteadyClock::now() - start;
  return static_cast<double>(jobs) / took.count();
}

}  // namespace loopfleet::bench
