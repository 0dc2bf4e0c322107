#pragma once
// Store: the one writer of a database. The journal of accepted jobs, the outcomes and the
// measurements live in one SQLite file (docs/DATABASE.md describes it for people). StoreReader
// (storage/store_reader.h) reads it.
//
// Threads: Open() where you like, then only one thread may call the rest (the storage thread).
//
// Guaranteed:
//  - What Apply() acknowledged survives a crash of the process, of the machine, and a loss of
//  power.
//  - A group is applied whole or not at all.
//  - One writer: while a Store is open, another Open() of the same file fails. Should that lock
//  ever
//    be defeated (its file removed, say), the newer epoch wins: the older Store commits nothing
//    more.
//  - Exactly one outcome for each job: a second one is refused.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "common/base/result.h"
#include "storage/record.h"

namespace loopfleet::storage {

class ResultKeys;
class Thinning;

// How long Open() waits for another writer to go, so that a quick restart meets no lock of its
// past.
inline constexpr std::chrono::milliseconds kLockWait{1000};
// How long a transaction waits for a person who writes to the file, or holds it exclusively, by
// hand.
inline constexpr std::chrono::milliseconds kBusyWait{5000};

struct StoreOptions {
  // The most that the database file may take on disk; 0: what the disk has. Beyond it: kFull.
  std::uint64_t max_file_bytes = 0;
  // How far the log grows before it is folded into the file, in pages of 4 KiB: pages that many
  // groups change are written back once. 32 MiB.
  std::uint32_t log_pages = 8192;
  // Results in memory before they are sealed into a run (storage/result_index/result_keys.h).
  std::size_t run_entries = 262'144;
};

class Store {
 public:
  // Creates the file (mode 0600) or brings it up to this version's schema, takes the lock beside it
  // ("<path>.lock") and makes the next boot epoch durable.
  //   kUnavailable  another process writes it: named by its pid. Answered within 2 s.
  //   kInvalid      not a loopfleet database, or made by a newer version
  //   kCorrupt      not what was written
  //   kFull, kSystem
  static Result<std::unique_ptr<Store>> Open(const std::filesystem::path& path,
                                             const StoreOptions& options = {});
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Where the last writer stopped: every batch and job that still needs something. Read it before
  // the first Apply(). A damaged job does not fail it: Recovery::damaged lists those.
  Result<Recovery> Recover();
  // The same without the jobs, which StoreReader::ReadUnfinished gives piece by piece.
  Result<Recovery> RecoverBatches();

  // This start's number; 1 for a new database.
  std::uint64_t epoch() const;

  // Where results are looked for, kept up to date by Apply(): a reader in this process that is
  // given it (StoreReader::Open) need not build one of its own. Any thread may read it.
  std::shared_ptr<const ResultKeys> result_keys() const;

  // Applies the writes in order, in one transaction that is on disk when this returns. On an error
  // nothing of the group was applied, and the Store can be used on, except after kClosed.
  //   kFull     the disk (or the options' bound) has no room: works again once there is
  //   kCorrupt  a page beside which this must write cannot be read: `loopfleet db repair`
  //   kClosed   a newer writer has taken over: stop
  //   kExists   a batch, a request or an outcome that is there already       } bugs of
  //   kInvalid  anything else that contradicts what is stored: jobs for a    } the caller,
  //             closed batch, a gap in the indices or sequences, an outcome  } named in
  //             for a job never accepted, a measurement without its key or   } the message
  //             with a time that is not finite and positive: what a peer claims is checked before
  //   kUnavailable  somebody else held the database for longer than kBusyWait
  Status Apply(std::span<const Write> writes);

  // The next step of a pass that takes raw samples from old results
  // (storage/sqlite/maintenance/thinning.h), in a transaction of its own: a few milliseconds. On an
  // error nothing has changed, the pass neither.
  //   as of Apply()
  Status Thin(Thinning& pass, WallTime now);

  // Gives the file's unused room back to the disk, by writing all of it anew: takes as long as that
  // does, twice the file's size for as long, and nobody else can write meanwhile. What it was
  // interrupted in (a crash, a full disk) was never begun.
  Status Compact();

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::storage
