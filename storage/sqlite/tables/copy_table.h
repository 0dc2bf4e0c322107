#pragma once
// CopyTable: which measurement a result repeats, if it is the figure of a kernel with the same
// machine code (`copied_results`).

#include <optional>

#include "common/base/result.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class CopyTable {
 public:
  explicit CopyTable(Connection& connection) : connection_(connection) {}

  // `original`: `id` itself if the measurement is not known: its job was cancelled, or it is old.
  Status Insert(ResultId id, ResultId original);
  // The measurement that the result repeats; none: it is no copy. kCorrupt: the row is damaged.
  Result<std::optional<ResultId>> OriginalOf(ResultId id);

 private:
  Connection& connection_;
};

}  // namespace loopfleet::storage
