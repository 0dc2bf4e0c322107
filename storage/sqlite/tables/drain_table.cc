#include "storage/sqlite/tables/drain_table.h"

namespace loopfleet::storage {

Status DrainTable::Save(const WorkersDrained& drained) {
  LF_TRY(Query query, connection_.Start("INSERT OR REPLACE INTO drains VALUES (?,?,?,?,?)"));
  return query.Add(drained.target)
      .Add(drained.reason)
      .Add(drained.by)
      .Add(drained.since.time_since_epoch().count())
      .AddChecksum()
      .Run();
}

Status DrainTable::Remove(const std::string& target) {
  LF_TRY(Query query, connection_.Start("DELETE FROM drains WHERE target = ?"));
  return query.Add(target).Run();
}

Result<std::vector<WorkersDrained>> DrainTable::List() {
  LF_TRY(Query row, connection_.Start("SELECT * FROM drains ORDER BY target"));
  std::vector<WorkersDrained> drains;
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return drains;
    WorkersDrained drained;
    drained.target = row.Text();
    drained.reason = row.Text();
    drained.by = row.Text();
    drained.since = WallTime(Nanos(row.Int64()));
    // It still drains: one drain too many is a mistake that an operator can see and undo.
    if (!row.ChecksumMatches()) drained.reason = "its row in the database is damaged";
    drains.push_back(std::move(drained));
  }
}

}  // namespace loopfleet::storage
