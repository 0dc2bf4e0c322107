#pragma once
// ResultKeys: the index of stored results by hash. A result has one entry for its tuple, and one
// for its machine code if it may answer for other kernels with that code. Storing a result costs
// the same at the first row and at the hundred-millionth: new entries stay in memory, and every
// kRunEntries of them are written as one sorted run, a piece in each transaction, which never
// changes. An ordinary index in the order of a hash would change a different page for each row.
//
// Hashes may collide: readers compare the row itself. In memory: 20 bytes for each entry not yet in
// a run, 3 bytes for each entry in one (the run's filter,
// storage/sqlite/result_index/run_filter.h). Every 32 runs share a group of filters, so a look-up
// in N runs reads about N / 32 * 8 + 31 cache lines, and none of them while it holds the lock. A
// restart reads the filters, which later transactions group again, and the rows that are in no run.
//
// Any thread may read; only the writer adds, seals and publishes.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/result_index/known_failures.h"
#include "storage/sqlite/result_index/result_hash.h"
#include "storage/sqlite/result_index/run_filter.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"

namespace loopfleet::storage {

using ResultId = std::int64_t;
class ResultKeys {
 public:
  static constexpr std::size_t kRunEntries = 262'144;
  explicit ResultKeys(std::size_t run_entries = kRunEntries) : run_entries_(run_entries) {}

  struct Entry {  // those of one result are next to each other
    ResultHash hash;
    ResultId id;
  };

  // Adds what `connection` sees and the index lacks. Seals nothing.
  // kCorrupt: a run's row is damaged; the runs before it are loaded.
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
  bool HasEntriesToSeal() const;  // Seal() would write
  // Writes some of a run of run_entries entries, or a whole one if two wait to be written.
  Status Seal(Connection& connection);
  // The transaction is durable: Find() uses its rows (ids ascend) and runs from now on.
  void Publish(std::span<const Entry> added);
  void Forget();  // the transaction was rolled back

 private:
  struct Run {
    std::int64_t run = 0;
    ResultId first_id = 0;
    ResultId last_id = 0;
    RunFilter filter;  // empty in a group
    std::vector<ResultHash> directory;
  };
  // A run that is being written. If the program ends first, the run is begun again.
  struct Sealing {
    std::shared_ptr<Run> run;
    std::vector<Entry> entries;  // sorted by hash, the newest first
    std::size_t written = 0;     // chunks, in the current transaction and before
    std::size_t durable = 0;     // chunks, before the current transaction
  };
  // Runs in a row, oldest first, with their filters.
  struct Group {
    std::vector<std::shared_ptr<const Run>> runs;
    std::optional<FilterGroup> filters;  // none: each run has its own
  };
  // All runs, oldest first. Immutable: a look-up goes on with the one that it has begun with.
  struct Runs {
    std::vector<std::shared_ptr<const Group>> groups;
    std::vector<std::shared_ptr<const Run>> rest;  // newer than those in groups
    const Run* newest() const;                     // null: none
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
  // Makes them the newest runs. For the only thread that changes the index.
  void AddRuns(std::vector<std::shared_ptr<const Run>> added);
  // Adds so many words of the filters of the oldest runs without a group to a new group, and puts
  // it in their place when it is whole. False: there are too few runs for one.
  bool GrowGroup(std::size_t words);
  void AddGroup(Group group);  // of the oldest runs without one
  Status LoadRows(Connection& connection, ConditionsTable& conditions);
  bool BeginRun();  // false: too few entries wait
  Status WriteChunk(Connection& connection);
  Status EndRun(Connection& connection);
  // Adds to `ids` until there are `max`.
  static Status FindInRun(Connection& connection, const Run& run, ResultHash hash, std::size_t max,
                          std::vector<ResultId>& ids);
  static Status FindInRuns(Connection& connection, std::span<const std::shared_ptr<const Run>> runs,
                           ResultHash hash, std::size_t max, std::vector<ResultId>& ids);
  static Status FindInGroup(Connection& connection, const Group& group, ResultHash hash,
                            std::size_t max, std::vector<ResultId>& ids);

  KnownFailures failures_;
  const std::size_t run_entries_;
  std::optional<Sealing> sealing_;
  std::vector<std::shared_ptr<const Run>> sealed_;  // by the writer's current transaction
  std::optional<FilterGroup> growing_;              // of the oldest runs without a group

  mutable std::mutex mutex_;
  Recent recent_;  // guarded by mutex_
  // Guarded by mutex_; the thread that changes it reads it without.
  std::shared_ptr<const Runs> runs_ = std::make_shared<const Runs>();
  std::vector<std::uint32_t> generations_ =
      std::vector<std::uint32_t>(65'536);  // guarded by mutex_
  ResultId last_id_ = 0;                   // guarded by mutex_: rows up to it are indexed
};

}  // namespace loopfleet::storage
