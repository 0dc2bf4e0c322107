#pragma once
// Store: the only writer of a database, whatever engine keeps it (storage/open.h). It holds the
// journal of accepted jobs, the outcomes and the measurements. A StoreReader
// (storage/store_reader.h) reads it.
//
// Threads: the storage thread alone, but for what says otherwise.
//
// Guarantees, which tests/unit/storage/conformance_test.cc holds every engine to:
//  - What Apply() acknowledged survives a crash of the process or the machine, and a power failure.
//  - A group is applied whole or not at all.
//  - One writer: while a Store is open, another one of the same database cannot be opened. If that
//    lock is defeated, the newer epoch wins: the older Store commits nothing more.
//  - Exactly one outcome for each job: a second one is refused.

#include <cstdint>
#include <memory>
#include <span>

#include "common/base/result.h"
#include "common/base/uuid.h"
#include "storage/record.h"
#include "storage/store_reader.h"

namespace loopfleet::storage {

class Pruning;
class Thinning;

// The writes of one transaction, in order, as pieces that stay where they are.
using WriteGroup = std::span<const std::span<const Write>>;

class Store {
 public:
  virtual ~Store() = default;

  // Where the last writer stopped: every unfinished batch and job. Call it before the first
  // Apply(). Damaged jobs are no error: Recovery::damaged lists them.
  Result<Recovery> Recover();
  // The same without the jobs, which StoreReader::ReadUnfinished reads in pieces.
  virtual Result<Recovery> RecoverBatches() = 0;

  // The number of this start; 1 for a new database.
  virtual std::uint64_t epoch() const = 0;
  // Names the history of this database: random, and another one after a snapshot is restored. The
  // restored database then gives out no epoch or batch number that the lost one may have used,
  // unless it was started 1,000 times or got 1,000,000 batches after the snapshot.
  virtual const Uuid& incarnation() const = 0;

  // A reader that shares what this Store keeps in memory, so that it finds results at once. Any
  // thread; one reader for each thread. It must not outlive the Store.
  //   kCorrupt, kSystem
  virtual Result<std::unique_ptr<StoreReader>> OpenReader() = 0;

  // Applies the writes in order, in one transaction that is on disk when this returns. On an error
  // nothing is applied, and the Store stays usable, except after kClosed.
  //   kFull     the disk (or max_file_bytes) has no room; works again once it has
  //   kCorrupt  the write needs a page that cannot be read: run `loopfleet db repair`
  //   kClosed   a newer writer has taken over: stop
  //   kUnavailable  another process held the database for too long
  // Bugs of the caller, named in the message (what a peer claims is validated before):
  //   kExists   a batch, request or outcome that exists already
  //   kInvalid  anything else that contradicts what is stored: jobs for a closed batch, a gap in
  //             the indices or sequences, an outcome for a job never accepted, a measurement
  //             without its key or with a time that is not finite and positive
  virtual Status Apply(WriteGroup group) = 0;
  Status Apply(std::span<const Write> writes) { return Apply(WriteGroup(&writes, 1)); }
  // Damaged rows that Apply() met since the last call.
  virtual std::uint64_t TakeDamagedCount() = 0;

  // Apply() looks at no more than kRowsPerStep rows that a ResultsSuspected may be about. The order
  // is on disk with it: no result that it covers answers, before a restart or after, and FlagMore()
  // flags the rest, kRowsPerStep in each transaction. Errors as of Apply().
  static constexpr std::int64_t kRowsPerStep = 10'000;
  virtual Status FlagMore() = 0;
  virtual bool HasMoreToFlag()
      const = 0;  // true: call FlagMore(), which finds out whether there is more

  // Runs the next step of a pass that removes raw samples from old results
  // (storage/thinning.h), in a transaction of its own: a few milliseconds. On an
  // error neither the file nor the pass has changed. Errors as of Apply().
  virtual Status Thin(Thinning& pass, WallTime now) = 0;

  // Runs the next step of a pass that removes old batches (storage/pruning.h);
  // otherwise as Thin().
  virtual Status Prune(Pruning& pass, WallTime now) = 0;

  // Removes known failures, so that these trees are run again; returns how many verdicts went.
  // Errors as of Apply().
  virtual Result<std::uint64_t> ForgetFailures(const FailureFilter& filter) = 0;

  // Returns the database's unused space to the disk by rewriting it. Needs twice its size
  // meanwhile, and blocks other writers. An interruption (a crash, a full disk) leaves it as it
  // was.
  virtual Status Compact() = 0;
};

}  // namespace loopfleet::storage
