#include "storage/sqlite/tables/suspicion_table.h"

#include "common/base/log.h"

namespace loopfleet::storage {

Result<std::int64_t> SuspicionTable::NextId() {
  return connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM suspicions");
}

Status SuspicionTable::Save(const Suspicion& suspicion) {
  LF_TRY(Query query,
         connection_.Start("INSERT OR REPLACE INTO suspicions VALUES (?,?,?,?,?,?,?,?,?,?)"));
  return query.Add(suspicion.id)
      .Add(suspicion.what.worker)
      .Add(suspicion.what.since.time_since_epoch().count())
      .Add(suspicion.what.flagged_at.time_since_epoch().count())
      .Add(suspicion.what.reason)
      .Add(suspicion.results.first)
      .Add(suspicion.results.last)
      .Add(suspicion.failures.first)
      .Add(suspicion.failures.last)
      .AddChecksum()
      .Run();
}

Status SuspicionTable::Remove(std::int64_t id) {
  LF_TRY(Query query, connection_.Start("DELETE FROM suspicions WHERE id = ?"));
  return query.Add(id).Run();
}

Result<std::optional<Suspicion>> SuspicionTable::Oldest() {
  while (true) {
    Suspicion suspicion;
    {
      LF_TRY(Query row, connection_.Start("SELECT * FROM suspicions ORDER BY id LIMIT 1"));
      LF_TRY(const bool found, row.Next());
      if (!found) return std::nullopt;
      suspicion.id = row.Int64();
      suspicion.what.worker = row.Text();
      suspicion.what.since = WallTime(Nanos(row.Int64()));
      suspicion.what.flagged_at = WallTime(Nanos(row.Int64()));
      suspicion.what.reason = row.Text();
      suspicion.results.first = row.Int64();
      suspicion.results.last = row.Int64();
      suspicion.failures.first = row.Int64();
      suspicion.failures.last = row.Int64();
      if (row.ChecksumMatches()) return suspicion;
    }
    log::Error("store.suspicion_lost row={} worker={}", suspicion.id, suspicion.what.worker);
    LF_TRY_VOID(Remove(suspicion.id));
  }
}

Result<bool> SuspicionTable::Covers(const std::string& worker, WallTime time) {
  LF_TRY(Query row, connection_.Start("SELECT 1 FROM suspicions WHERE worker = ? AND since <= ?"));
  row.Add(worker).Add(time.time_since_epoch().count());
  return row.Next();
}

}  // namespace loopfleet::storage
