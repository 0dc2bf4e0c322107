#pragma once
// ForeignTable: the figures of other coordinators among the results (`foreign_results`).

#include <optional>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class ForeignTable {
 public:
  explicit ForeignTable(Connection& connection) : connection_(connection) {}

  Status Insert(ResultId id, const Elsewhere& where, WallTime measured_at);
  // When another coordinator's worker measured it; none: it was measured here. kCorrupt: the row is
  // damaged.
  Result<std::optional<WallTime>> MeasuredAt(ResultId id);

 private:
  Connection& connection_;
};

}  // namespace loopfleet::storage
