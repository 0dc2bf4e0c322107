#include "storage/sqlite/tables/foreign_table.h"

namespace loopfleet::storage {

Status ForeignTable::Insert(ResultId id, const Elsewhere& where, WallTime measured_at) {
  LF_TRY(Query query, connection_.Start("INSERT INTO foreign_results VALUES (?,?,?,?,?,?)"));
  return query.Add(id)
      .Add(std::span<const std::uint8_t>(where.coordinator.bytes))
      .Add(where.job.batch.value)
      .Add(where.job.index)
      .Add(measured_at.time_since_epoch().count())
      .AddChecksum()
      .Run();
}

}  // namespace loopfleet::storage
