#include "storage/sqlite/tables/foreign_table.h"

#include "storage/sqlite/damage.h"
#include "storage/sqlite/migrations.h"

namespace loopfleet::storage {

Status ForeignTable::Insert(ResultId id, const Elsewhere& where, WallTime measured_at) {
  LF_TRY_VOID(RaiseOldestProgram(connection_, 19));  // older ones answer with it
  LF_TRY(Query query, connection_.Start("INSERT INTO foreign_results VALUES (?,?,?,?,?,?)"));
  return query.Add(id)
      .Add(std::span<const std::uint8_t>(where.coordinator.bytes))
      .Add(where.job.batch.value)
      .Add(where.job.index)
      .Add(measured_at.time_since_epoch().count())
      .AddChecksum()
      .Run();
}

Result<std::optional<WallTime>> ForeignTable::MeasuredAt(ResultId id) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM foreign_results WHERE result = ?"));
  row.Add(id);
  LF_TRY(const bool found, row.Next());
  if (!found) return std::nullopt;
  for (int column = 0; column < 4; ++column) row.Skip();
  const WallTime measured_at{Nanos(row.Int64())};
  if (!row.ChecksumMatches()) return Damaged("foreign_results", id);
  return measured_at;
}

}  // namespace loopfleet::storage
