#include "storage/sqlite/tables/copy_table.h"

#include "storage/sqlite/damage.h"

namespace loopfleet::storage {

Status CopyTable::Insert(ResultId id, ResultId original) {
  LF_TRY(Query query, connection_.Start("INSERT INTO copied_results VALUES (?,?,?)"));
  return query.Add(id).Add(original).AddChecksum().Run();
}

Result<std::optional<ResultId>> CopyTable::OriginalOf(ResultId id) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM copied_results WHERE result = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return std::nullopt;
  row.Skip();
  const ResultId original = row.Int64();
  if (!row.ChecksumMatches()) return Damaged("copied_results", id);
  return original;
}

}  // namespace loopfleet::storage
