#pragma once
// RetentionTable: runs a pass over old results (storage/thinning.h) and keeps
// one row for each pass that changed anything: what was removed, and by which rule.

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/result_table.h"
#include "storage/thinning.h"

namespace loopfleet::storage {

class RetentionTable {
 public:
  RetentionTable(Connection& connection, ResultTable& results)
      : connection_(connection), results_(results) {}

  // Runs the next step of the pass in the current transaction. Examines at most kRowsPerStep
  // results, and rewrites at most kBytesPerStep of them and one result more.
  Status Step(Thinning& pass, WallTime now);

  static constexpr std::uint32_t kRowsPerStep = 512;
  static constexpr std::size_t kBytesPerStep = 512 << 10;
  // A pass of Scope::kNew ends after this many results in a row that are too new: ids ascend with
  // time, unless a clock was set. Those of a clock that was ahead do not count.
  static constexpr std::uint32_t kTooNewInRow = 1000;

 private:
  Status Begin(Thinning& pass, WallTime now);
  Status Save(const Thinning& pass, WallTime now);

  Connection& connection_;
  ResultTable& results_;
};

// StoreReader::CountThinning.
Result<ThinningCount> CountThinning(Connection& connection, const ThinningRule& rule);

}  // namespace loopfleet::storage
