#pragma once
// The peer of `store`: the obvious design. One SQLite table of results with an index by key, one by
// job and one by time; WAL, synchronous=FULL, prepared statements, the same rows per transaction.

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "common/base/result.h"

namespace loopfleet::bench {

struct PeerRate {
  std::string text;
  std::optional<double> per_second;
};

class TablePeer {
 public:
  // Makes the file, or goes on with it. `benchmarks`: how many different ones the rows have.
  static Result<TablePeer> Open(const std::filesystem::path& path, std::uint64_t benchmarks = 1);

  // Rows per second.
  Result<double> Insert(std::uint64_t rows, std::uint32_t rows_per_transaction);
  // Lookups per second of stored keys. Each reads the whole row.
  Result<double> LookUp(int count);
  Result<std::uint64_t> CountBest();  // the fastest of each benchmark, all read

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Status Run(const char* sql);
  Result<std::unique_ptr<sqlite3_stmt, Close>> Prepare(const char* sql);
  Result<std::uint64_t> Number(const char* sql);

  std::unique_ptr<sqlite3, Close> database_;
  std::unique_ptr<sqlite3_stmt, Close> insert_;
  std::unique_ptr<sqlite3_stmt, Close> look_up_;
  std::uint64_t benchmarks_ = 1;
  std::uint64_t rows_ = 0;
};

}  // namespace loopfleet::bench
