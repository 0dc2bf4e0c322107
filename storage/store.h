#pragma once
// Store: the only writer of a database. One SQLite file (docs/DATABASE.md) holds the journal of
// accepted jobs, the outcomes and the measurements. StoreReader (storage/store_reader.h) reads it.
//
// Threads: Open() on any thread; everything else on one thread (the storage thread).
//
// Guarantees:
//  - What Apply() acknowledged survives a crash of the process or the machine, and a power failure.
//  - A group is applied whole or not at all.
//  - One writer: while a Store is open, another Open() of the same file fails. If that lock is
//    defeated (its file removed, say), the newer epoch wins: the older Store commits nothing more.
//  - Exactly one outcome for each job: a second one is refused.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "common/base/result.h"
#include "common/base/uuid.h"
#include "storage/record.h"

namespace loopfleet::storage {

class ResultKeys;
class Pruning;
class Thinning;

// How long Open() waits for another writer to end, so that a quick restart does not fail on the
// lock of its predecessor.
inline constexpr std::chrono::milliseconds kLockWait{1000};
// How long a transaction waits for another process that has locked the file, such as a person's
// sqlite3 shell.
inline constexpr std::chrono::milliseconds kBusyWait{5000};

struct StoreOptions {
  // Largest size of the database file in bytes; 0: unlimited. Beyond it, writes fail with kFull.
  std::uint64_t max_file_bytes = 0;
  // Pages of 4 KiB in the log before it is folded into the file (8192: 32 MiB). A long log writes a
  // page that many groups change back once.
  std::uint32_t log_pages = 8192;
  // Results kept in memory before they are sealed into a run (storage/result_index/result_keys.h).
  std::size_t run_entries = 262'144;
};

class Store {
 public:
  // Creates the file (mode 0600) or brings it up to this version's schema, takes the lock beside it
  // ("<path>.lock") and makes the next boot epoch durable.
  //   kUnavailable  another process writes it: named by its pid. Takes at most 2 s.
  //   kInvalid      not a loopfleet database, or of a newer version that this one may not write
  //                 (storage/sqlite/migrations.h)
  //   kCorrupt      the file is damaged
  //   kFull, kSystem
  static Result<std::unique_ptr<Store>> Open(const std::filesystem::path& path,
                                             const StoreOptions& options = {});
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Where the last writer stopped: every unfinished batch and job. Call it before the first
  // Apply(). Damaged jobs are no error: Recovery::damaged lists them.
  Result<Recovery> Recover();
  // The same without the jobs, which StoreReader::ReadUnfinished reads in pieces.
  Result<Recovery> RecoverBatches();

  // The number of this start; 1 for a new database.
  std::uint64_t epoch() const;
  // Names the history of this database: random, and another one after a snapshot is restored. The
  // restored database then gives out no epoch or batch number that the lost one may have used,
  // unless it was started 1,000 times or got 1,000,000 batches after the snapshot.
  const Uuid& incarnation() const;

  // The index of stored results, kept up to date by Apply(). A reader in this process that is given
  // it (StoreReader::Open) need not build its own. Any thread may read it.
  std::shared_ptr<const ResultKeys> result_keys() const;

  // Applies the writes in order, in one transaction that is on disk when this returns. On an error
  // nothing is applied, and the Store stays usable, except after kClosed.
  //   kFull     the disk (or max_file_bytes) has no room; works again once it has
  //   kCorrupt  the write needs a page that cannot be read: run `loopfleet db repair`
  //   kClosed   a newer writer has taken over: stop
  //   kUnavailable  another process held the database for longer than kBusyWait
  // Bugs of the caller, named in the message (what a peer claims is validated before):
  //   kExists   a batch, request or outcome that exists already
  //   kInvalid  anything else that contradicts what is stored: jobs for a closed batch, a gap in
  //             the indices or sequences, an outcome for a job never accepted, a measurement
  //             without its key or with a time that is not finite and positive
  Status Apply(std::span<const Write> writes);

  // Apply() looks at no more than kRowsPerStep rows that a ResultsSuspected may be about. The order
  // is on disk with it: no result that it covers answers, before a restart or after, and FlagMore()
  // flags the rest, kRowsPerStep in each transaction. Errors as of Apply().
  static constexpr std::int64_t kRowsPerStep = 10'000;
  Status FlagMore();
  bool HasMoreToFlag() const;  // true: call FlagMore(), which finds out whether there is more

  // Runs the next step of a pass that removes raw samples from old results
  // (storage/sqlite/maintenance/thinning.h), in a transaction of its own: a few milliseconds. On an
  // error neither the file nor the pass has changed. Errors as of Apply().
  Status Thin(Thinning& pass, WallTime now);

  // Runs the next step of a pass that removes old batches (storage/sqlite/maintenance/pruning.h);
  // otherwise as Thin().
  Status Prune(Pruning& pass, WallTime now);

  // Removes known failures, so that these trees are run again; returns how many verdicts went.
  // Errors as of Apply().
  Result<std::uint64_t> ForgetFailures(const FailureFilter& filter);

  // Returns the file's unused space to the disk by rewriting the file. Needs twice the file's size
  // meanwhile, and blocks other writers. An interruption (a crash, a full disk) leaves the file as
  // it was.
  Status Compact();

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::storage
