#pragma once
// ObservationTable: Evaluation with observed values <-> row of `observations`. A job that is not
// timed has one; its outcome refers to it by a ResultId below 0, minus the row's id.

#include <array>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/job/outcome.h"
#include "storage/record.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"
#include "storage/sqlite/tables/result_table.h"

namespace loopfleet::storage {

constexpr bool IsObservation(ResultId id) { return id < 0; }

class ObservationTable {
 public:
  ObservationTable(Connection& connection, ConditionsTable& conditions)
      : connection_(connection), conditions_(conditions) {}

  // `job`: as accepted. kInvalid: the subject or the conditions are missing, or a value is not
  // finite.
  Result<ResultId> Insert(const Outcome& outcome, const JobSpec& job);
  // The row of an answer from the store.
  Result<std::optional<ResultId>> FindSame(const Evaluation& evaluation);
  // kCorrupt: the row is damaged or missing.
  Result<StoredAnswer> Find(ResultId id, ObservedValues values);
  // It answers nothing any more.
  Status Suspect(ResultId id, WallTime flagged_at, const std::string& reason);
  // The newest that has the subject, the conditions and the age of the key, and is not suspect;
  // null: none.
  Result<StoredAnswer> FindLatest(const ResultKey& key, ObservedValues values);

 private:
  Result<StoredResult> ReadRow(Query& row, ResultId id, ObservedValues values);

  Connection& connection_;
  ConditionsTable& conditions_;
  // Found last, by ObservedValues: equal jobs of one message, and their outcomes, share it. A row
  // never changes.
  std::array<StoredAnswer, 2> last_;
};

}  // namespace loopfleet::storage
