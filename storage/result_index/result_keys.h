#pragma once
// ResultKeys: where to look for the results that may answer a question. Made so that storing a
// result costs the same at the first row and at the hundred-millionth: new entries stay in memory,
// and whenever kRunEntries of them have gathered they are written as one sorted run, which is never
// changed. An ordinary index, in the order of a hash, would change a page of its own for each row.
//
// A question is looked up by a hash of the full tuple. The hash only says where to look: whoever
// asks compares the row itself. In memory: 20 bytes for each entry not in a run yet, 2 bytes for
// each that is (its run's Bloom filter). A restart reads the filters, and the rows that are in no
// run.
//
// Any thread may ask; only the writer adds, seals and publishes.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/result_index/known_failures.h"
#include "storage/result_index/result_hash.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"

namespace loopfleet::storage {

using ResultId = std::int64_t;
class ResultKeys {
 public:
  static constexpr std::size_t kRunEntries = 262'144;
  explicit ResultKeys(std::size_t run_entries = kRunEntries) : run_entries_(run_entries) {}

  struct Entry {
    ResultHash hash;
    ResultId id;
  };

  // Takes in what `connection` sees and this does not know yet. Seals nothing.
  // kCorrupt: a run's row is not what was written; those before it are known.
  Status Refresh(Connection& connection, ConditionsTable& conditions);

  // The rows that may be about `hash` with an id below `below`, newest first, at most `max`.
  // kCorrupt: a page of a run is not what was written.
  Result<std::vector<ResultId>> Find(Connection& connection, ResultHash hash, ResultId below,
                                     std::size_t max) const;
  // Changes whenever there is a new row that may be about `hash`, or rows were suspected: an answer
  // that was found is good for as long as this stays.
  std::uint32_t Generation(ResultHash hash) const;
  // Where the failures are that answer again.
  KnownFailures& failures() { return failures_; }
  const KnownFailures& failures() const { return failures_; }

  // Changes every generation. Of all that was found, some may be good no more.
  void Invalidate();

  // ---- the writer's, in a transaction ----
  // Removes the runs that are not known, so that their results are read as new ones.
  Status DropUnknownRuns(Connection& connection);
  // Writes runs while there are enough entries for one.
  Status Seal(Connection& connection);
  // The transaction is durable: Find() knows its rows (ids ascend) and its runs from now on.
  void Publish(std::span<const Entry> added);
  void Forget();  // it was undone

 private:
  struct Run {
    std::int64_t run = 0;
    ResultId first_id = 0;
    ResultId last_id = 0;
    std::vector<std::uint64_t> filter;
    std::vector<ResultHash> directory;
  };
  // Entries in the order of their ids, and by hash through chains from the newest to the oldest.
  class Recent {
   public:
    void Add(const Entry& entry);
    const std::vector<Entry>& entries() const { return entries_; }
    void Find(ResultHash hash, ResultId below, std::size_t max, std::vector<ResultId>& ids) const;
    void DropThrough(ResultId last);

   private:
    void Rebuild();
    std::vector<Entry> entries_;
    std::vector<std::uint32_t>
        before_;  // of each entry: 1 + the one before it in its chain; 0: none
    std::vector<std::uint32_t> newest_;  // of each chain: 1 + its newest entry; 0: none
  };

  void AddRecent(const Entry& entry);  // mutex_ is held
  Status LoadRuns(Connection& connection);
  Status LoadRows(Connection& connection, ConditionsTable& conditions);
  Status WriteRun(Connection& connection, std::vector<Entry> entries);
  static Result<bool> FindInRun(Connection& connection, const Run& run, ResultHash hash,
                                ResultId below, std::size_t max, std::vector<ResultId>& ids);

  KnownFailures failures_;
  const std::size_t run_entries_;
  std::vector<std::shared_ptr<const Run>> sealed_;  // the writer's: by the transaction under way

  mutable std::mutex mutex_;
  Recent recent_;                                 // guarded by mutex_
  std::vector<std::shared_ptr<const Run>> runs_;  // guarded by mutex_; oldest first
  std::vector<std::uint32_t> generations_ =
      std::vector<std::uint32_t>(65'536);  // guarded by mutex_
  ResultId last_id_ = 0;                   // guarded by mutex_: everything up to it is known
};

}  // namespace loopfleet::storage
