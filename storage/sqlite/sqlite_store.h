#pragma once
// SqliteStore: a Store in one SQLite file (docs/DATABASE.md). SqliteReader
// (storage/sqlite/sqlite_reader.h) reads it, also from other processes.
//
// Threads: Open() on any thread; otherwise as Store says.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "common/base/result.h"
#include "common/base/uuid.h"
#include "storage/record.h"
#include "storage/store.h"

namespace loopfleet::storage {

class ResultKeys;

// How long Open() waits for another writer to end, so that a quick restart does not fail on the
// lock of its predecessor.
inline constexpr std::chrono::milliseconds kLockWait{1000};

struct StoreOptions {
  // Largest size of the database file in bytes; 0: unlimited. Beyond it, writes fail with kFull.
  std::uint64_t max_file_bytes = 0;
  // Pages of 4 KiB in the log before it is folded into the file (8192: 32 MiB). A long log writes a
  // page that many groups change back once.
  std::uint32_t log_pages = 8192;
  // Pages that the log grows by before a thread folds them beside the writer
  // (storage/sqlite/log_folder.h); 0: only the writer folds.
  std::uint32_t fold_pages = 2048;
  // Results kept in memory before they are sealed into a run
  // (storage/sqlite/result_index/result_keys.h).
  std::size_t run_entries = 262'144;
};

class SqliteStore final : public Store {
 public:
  // Creates the file (mode 0600) or brings it up to this version's schema, takes the lock beside it
  // ("<path>.lock") and makes the next boot epoch durable.
  //   kUnavailable  another process writes it: named by its pid. Takes at most 2 s.
  //   kInvalid      not a loopfleet database, or of a newer version that this one may not write
  //                 (storage/sqlite/migrations.h)
  //   kCorrupt      the file is damaged
  //   kFull, kSystem
  static Result<std::unique_ptr<SqliteStore>> Open(const std::filesystem::path& path,
                                                   const StoreOptions& options = {});
  ~SqliteStore() override;
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  // The index of stored results, kept up to date by Apply(). A reader in this process that is given
  // it (SqliteReader::Open) need not build its own. Any thread may read it.
  std::shared_ptr<const ResultKeys> result_keys() const;

  Result<Recovery> RecoverBatches() override;
  std::uint64_t epoch() const override;
  const Uuid& incarnation() const override;
  Result<std::unique_ptr<StoreReader>> OpenReader() override;
  using Store::Apply;
  Status Apply(WriteGroup group) override;
  std::uint64_t TakeDamagedCount() override;
  Status FlagMore() override;
  bool HasMoreToFlag() const override;
  Status Thin(Thinning& pass, WallTime now) override;
  Status Prune(Pruning& pass, WallTime now) override;
  Result<std::uint64_t> ForgetFailures(const FailureFilter& filter) override;
  Status Compact() override;

 private:
  struct Impl;
  explicit SqliteStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::storage
