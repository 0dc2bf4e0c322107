#pragma once
// ResultTable: Evaluation with a measurement <-> row of `results`.

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/result.h"
#include "common/job/outcome.h"
#include "storage/conditions_table.h"
#include "storage/record.h"
#include "storage/sqlite.h"

namespace loopfleet::storage {

using ResultId = std::int64_t;

class ResultTable {
 public:
  ResultTable(Connection& connection, ConditionsTable& conditions)
      : connection_(connection), conditions_(conditions) {}

  // Writes an outcome's measurement as a new row. kInvalid: it lacks its tree key or its
  // conditions, or its figures are senseless.
  Result<ResultId> Insert(const Outcome& outcome);
  // The row that already says what this outcome's evaluation says, if there is one.
  Result<std::optional<ResultId>> FindSame(const Evaluation& evaluation);

  // kCorrupt: no such row, or one that is not what was written.
  Result<StoredResult> Find(ResultId id);
  // Suspected ones do not count.
  Result<std::optional<StoredResult>> FindLatest(const ResultKey& key);

  Status Suspect(const ResultsSuspected& suspected);

  // To be called when a transaction was undone: what it inserted is gone.
  void Forget() { next_id_.reset(); }

 private:
  Result<ResultId> NextId();
  Result<StoredResult> ReadRow(Query& row, ResultId id);

  Connection& connection_;
  ConditionsTable& conditions_;
  std::optional<ResultId> next_id_;  // the writer's; read from the table when it is not known
};

}  // namespace loopfleet::storage
