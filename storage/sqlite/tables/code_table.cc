#include "storage/sqlite/tables/code_table.h"

#include "storage/sqlite/damage.h"

namespace loopfleet::storage {

Status CodeTable::Insert(ResultHash code, ResultId id, const Measurement& measurement) {
  code_rows_.Add(code).Add(id).Add(measurement.elapsed_mean_ns);
  return code_rows_.EndRow();
}

// Flushes first: a worker often reports the measurement and its copies in one message.
Status CodeTable::InsertCopy(ResultHash code, ResultId id, const Measurement& measurement) {
  LF_TRY_VOID(Flush());
  ResultId original = 0;
  {
    LF_TRY(Query row, connection_.Start("SELECT result FROM code_results WHERE code = ? AND "
                                        "elapsed_mean_ns = ? ORDER BY result DESC LIMIT 1"));
    row.Add(code).Add(measurement.elapsed_mean_ns);
    LF_TRY(const bool found, row.Next());
    if (!found) return {};
    original = row.Int64();
  }
  LF_TRY(Query query, connection_.Start("INSERT INTO copied_results VALUES (?,?,?)"));
  return query.Add(id).Add(original).AddChecksum().Run();
}

Result<std::vector<ResultId>> CodeTable::Find(ResultHash code, std::size_t max) {
  LF_TRY(Query row, connection_.Start("SELECT result FROM code_results WHERE code = ? "
                                      "ORDER BY result DESC LIMIT ?"));
  row.Add(code).Add(max);
  std::vector<ResultId> ids;
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return ids;
    ids.push_back(row.Int64());
  }
}

Result<std::optional<ResultId>> CodeTable::OriginalOf(ResultId id) {
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
