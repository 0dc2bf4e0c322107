#pragma once
// RetentionTable: what was taken away from old results, and by what rule: a row for each pass
// (storage/sqlite/maintenance/thinning.h) that changed anything.

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/sqlite/maintenance/thinning.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/result_table.h"

namespace loopfleet::storage {

class RetentionTable {
 public:
  RetentionTable(Connection& connection, ResultTable& results)
      : connection_(connection), results_(results) {}

  // The next step of the pass, in the transaction under way. Looks at no more than
  // kRowsPerStep results, and rewrites no more than kBytesPerStep of them and one.
  Status Step(Thinning& pass, WallTime now);

  static constexpr std::uint32_t kRowsPerStep = 512;
  static constexpr std::size_t kBytesPerStep = 512 << 10;
  // So many results in a row that are too new end a pass of Scope::kNew: ids ascend as results are
  // measured, but for what a clock that was set may have done.
  static constexpr std::uint32_t kTooNewInRow = 1000;

 private:
  Status Begin(Thinning& pass, WallTime now);
  Status Save(const Thinning& pass, WallTime now);

  Connection& connection_;
  ResultTable& results_;
};

}  // namespace loopfleet::storage
