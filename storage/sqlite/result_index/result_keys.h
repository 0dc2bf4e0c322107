#pragma once
// ResultKeys: the index of stored results by hash. A result has one entry for its tuple, and one
// for its machine code if it may answer for other kernels with that code. Storing a result costs
// the same at the first row and at the hundred-millionth: new entries stay in memory, every
// kRunEntries of them are written as one sorted run, and runs are merged, all in small pieces of
// the transactions that add results. An ordinary index in the order of a hash would change a
// different page for each row.
//
// Hashes may collide: readers compare the row itself. In memory: 20 bytes for each entry not yet in
// a run, 3 bytes for each entry in one. A look-up in N runs of level 0 asks about 15 * log16(N)
// filters, and none of them while it holds the lock. A restart reads the filters, and the rows that
// are in no run.
//
// Any thread may read; only the writer adds, writes runs and publishes.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/result_index/compaction.h"
#include "storage/sqlite/result_index/known_failures.h"
#include "storage/sqlite/result_index/result_hash.h"
#include "storage/sqlite/result_index/run_catalog.h"
#include "storage/sqlite/result_index/sorted_run.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"

namespace loopfleet::storage {

class ResultKeys {
 public:
  static constexpr std::size_t kRunEntries = 262'144;
  explicit ResultKeys(std::size_t run_entries = kRunEntries) : run_entries_(run_entries) {}

  using Entry = IndexEntry;  // those of one result are next to each other

  // Makes the index what `connection` sees. Seals nothing.
  // kCorrupt: the row of a run is damaged; the runs before it are loaded.
  Status Refresh(Connection& connection, ConditionsTable& conditions);

  // Ids of rows that may have this hash, newest first, at most `max`.
  // kCorrupt: a chunk of a run is missing or damaged.
  Result<std::vector<ResultId>> Find(Connection& connection, ResultHash hash,
                                     std::size_t max) const;
  // Changes whenever a row that may have this hash is added, or any result is flagged as suspect.
  // An answer stays valid until it changes.
  std::uint32_t Generation(ResultHash hash) const;
  // The failures that answer equal jobs.
  KnownFailures& failures() { return failures_; }
  const KnownFailures& failures() const { return failures_; }

  // Changes every generation: some answers may no longer be valid.
  void Invalidate();

  // ---- for the writer, in a transaction ----
  // Removes the runs that are not loaded, so that their results are indexed as new ones.
  Status DropUnknownRuns(Connection& connection);
  // Goes on with the merges that an earlier program began. After Refresh().
  Status ResumeMerges(Connection& connection) { return compaction_.Resume(connection, catalog_); }
  bool HasEntriesToSeal() const;  // WriteRuns() would write a new run
  // Writes some of a run of run_entries entries, or a whole one if two wait to be written, and some
  // of what is merged (storage/sqlite/result_index/compaction.h).
  Status WriteRuns(Connection& connection);
  // The transaction is durable: Find() uses its rows (ids ascend) and runs from now on.
  void Publish(std::span<const Entry> added);
  void Forget();  // the transaction was rolled back

 private:
  // A run that is being written. If the program ends first, the run is begun again.
  struct Sealing {
    std::shared_ptr<RunPart> part;
    std::vector<Entry> entries;  // sorted, the newest first
    std::size_t durable = 0;     // chunks, before the current transaction
    std::span<const Entry> rest() const {
      return std::span(entries).subspan(part->directory.size() * RunPart::kChunkEntries);
    }
  };
  // Entries ordered by id. Chains from the newest to the oldest find them by hash.
  class Recent {
   public:
    void Add(const Entry& entry);
    const std::vector<Entry>& entries() const { return entries_; }
    void Find(ResultHash hash, std::size_t max, std::vector<ResultId>& ids) const;
    void DropThrough(ResultId last);

   private:
    void Rebuild();
    std::vector<Entry> entries_;
    // For each entry: 1 + the index of the one before it in its chain; 0: none.
    std::vector<std::uint32_t> before_;
    // For each chain: 1 + the index of its newest entry; 0: none.
    std::vector<std::uint32_t> newest_;
  };

  void AddRecent(const Entry& entry);  // mutex_ is held
  Status LoadRuns(Connection& connection);
  // Everything in them is indexed. For the only thread that changes the index.
  void SetRuns(SortedRuns runs);
  Status LoadRows(Connection& connection, ConditionsTable& conditions);
  Status Seal(Connection& connection);
  bool BeginRun();  // false: too few entries wait
  Status EndRun(Connection& connection);
  static Status FindInRuns(Connection& connection, const SortedRuns& runs, ResultHash hash,
                           std::size_t max, std::vector<ResultId>& ids);

  KnownFailures failures_;
  const std::size_t run_entries_;
  RunCatalog catalog_;         // when runs were loaded; without them
  PartNumber newest_run_ = 0;  // that was sealed
  std::optional<Sealing> sealing_;
  SortedRuns sealed_;  // by the writer's current transaction
  Compaction compaction_{run_entries_};

  mutable std::mutex mutex_;
  Recent recent_;  // guarded by mutex_
  // Guarded by mutex_; the thread that changes it reads it without.
  std::shared_ptr<const SortedRuns> runs_ = std::make_shared<const SortedRuns>();
  std::vector<std::uint32_t> generations_ =
      std::vector<std::uint32_t>(65'536);  // guarded by mutex_
  ResultId last_id_ = 0;                   // guarded by mutex_: rows up to it are indexed
};

}  // namespace loopfleet::storage
