#pragma once
// BestTable: rows of `best_schedules`, the fastest schedules of each program under each class of
// hardware, thread count and cache state.
//
// Invariant: a place (program, class, threads, cache) holds at most kMostOfPlace trees, each with
// its newest figure, and none that was in doubt when it was last written. Several are kept because
// the first may come into doubt.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/job/outcome.h"
#include "storage/record.h"
#include "storage/sqlite/recent_map.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/result_table.h"

namespace loopfleet::storage {

class BestTable {
 public:
  static constexpr std::size_t kMostOfPlace = 8;

  BestTable(Connection& connection, JobTable& jobs, ResultTable& results)
      : connection_(connection), jobs_(jobs), results_(results) {}

  // Enters the outcome's measurement, which is row `result`, if it is among the fastest: true. Its
  // job may be of the same transaction.
  Result<bool> Note(const ProgramKey& program, const Outcome& outcome, ResultId result);
  // Call when a result came into doubt, and after a rollback.
  void Forget() { places_.Clear(); }

  // As StoreReader::FindBest. Damaged rows do not count.
  Result<std::vector<BestSchedule>> Find(const BestQuery& query);

 private:
  // What the writer knows of a tree of a place.
  struct Entry {
    SubjectKey subject;
    double elapsed_ns = 0;
  };
  using Entries = std::vector<Entry>;
  static constexpr std::size_t kRecentPlaces = 16'384;

  Result<Entries> EntriesOf(const ProgramKey& program, const Conditions& conditions);
  Status Save(const ProgramKey& program, const Outcome& outcome, ResultId result);
  Status Remove(const ProgramKey& program, const Conditions& conditions, const SubjectKey& subject);

  Connection& connection_;
  JobTable& jobs_;
  ResultTable& results_;
  RecentMap<std::string, Entries> places_{kRecentPlaces};  // writer only
};

}  // namespace loopfleet::storage
