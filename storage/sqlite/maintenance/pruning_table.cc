#include "storage/sqlite/maintenance/pruning_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/sqlite/damage.h"

namespace loopfleet::storage {

Status PruningTable::Begin(Pruning& pass, WallTime now) {
  Pruning::Progress& at = pass.progress();
  at.phase = Pruning::Phase::kRemoving;
  at.begun_at = now;
  LF_TRY(Query row, connection_.Start("SELECT * FROM prunings ORDER BY id DESC LIMIT 1"));
  LF_TRY(const bool found, row.Next());
  if (!found) return {};
  for (int column = 0; column < 5; ++column) row.Skip();  // id .. finished_before
  const BatchId removing{row.Int<std::uint64_t>()};
  for (int column = 0; column < 5; ++column) row.Skip();  // batches .. known_failures
  // If the row is damaged, what is left of that batch stays, which `db check` reports.
  if (row.ChecksumMatches()) at.removing = removing;
  return {};
}

Status PruningTable::Step(Pruning& pass, WallTime now) {
  Pruning::Progress& at = pass.progress();
  if (at.phase == Pruning::Phase::kNew) {
    LF_TRY_VOID(Begin(pass, now));
  }
  switch (at.phase) {
    case Pruning::Phase::kNew:
    case Pruning::Phase::kOver: return {};
    case Pruning::Phase::kRemoving: return Remove(pass, now);
    case Pruning::Phase::kShrinking: return Shrink(pass);
  }
  return {};
}

Status PruningTable::Remove(Pruning& pass, WallTime now) {
  Pruning::Progress& at = pass.progress();
  Room room;
  bool is_news = false;
  for (std::uint32_t examined = 0; examined < kBatchesPerStep && !room.is_full(); ++examined) {
    if (!at.removing) {
      LF_TRY_VOID(Examine(pass, now));
      if (at.phase != Pruning::Phase::kRemoving) break;
      if (!at.removing) continue;
    }
    is_news = true;
    LF_TRY(const bool is_gone, RemoveRows(pass, room));
    if (is_gone) at.removing = {};
  }
  if (!is_news) return {};
  if (at.id == 0) {
    LF_TRY(at.id, connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM prunings"));
  }
  return Save(pass, now);
}

Status PruningTable::Examine(Pruning& pass, WallTime now) {
  Pruning::Progress& at = pass.progress();
  LF_TRY(const auto next, tables_.batches.After(at.seen));
  if (!next || next->is_newest || at.too_new_in_row == kTooNewInRow) {
    const bool is_news = at.id != 0;
    at.phase = is_news ? Pruning::Phase::kShrinking : Pruning::Phase::kOver;
    return {};
  }
  at.seen = next->id;
  if (next->batch && next->batch->accepted_at >= pass.rule().finished_before) {
    if (next->batch->accepted_at <= now) ++at.too_new_in_row;
    return {};
  }
  at.too_new_in_row = 0;
  Result<bool> is_old = Damaged("batches", next->id);
  if (next->batch) is_old = IsOld(pass, *next->batch);
  if (!is_old && is_old.error().kind != ErrorKind::kCorrupt) {
    return std::unexpected(is_old.error());
  }
  if (!is_old) ++at.count.damaged;
  if (!is_old.value_or(false)) return {};
  LF_TRY_VOID(tables_.batches.Remove(next->id));
  ++at.count.batches;
  at.removing = next->id;
  return {};
}

Result<bool> PruningTable::IsOld(const Pruning& pass, const StoredBatch& batch) {
  if (!batch.is_over()) return false;
  if (batch.job_count == 0) return true;  // it was accepted long ago
  LF_TRY(const WallTime finished_at, tables_.outcomes.FinishedAt(batch.batch, batch.finished));
  return finished_at < pass.rule().finished_before;
}

Result<bool> PruningTable::RemoveRows(Pruning& pass, Room& room) {
  Pruning::Progress& at = pass.progress();
  const BatchId batch = at.removing;
  PruningCount& count = at.count;
  // The last outcomes first: what is left of them has no gap.
  LF_TRY(const auto outcomes, tables_.outcomes.RemoveLast(batch, room.rows));
  count.outcomes += outcomes.rows;
  room.rows -= outcomes.rows;
  if (outcomes.rows > 0) {
    LF_TRY(const std::uint32_t failures,
           tables_.failures.RemoveFrom(connection_, batch, outcomes.first_sequence));
    count.known_failures += failures;
  }
  if (room.is_full()) return false;
  LF_TRY(const auto jobs, tables_.jobs.RemoveFirst(batch, room.rows, room.bytes));
  count.jobs += jobs.rows;
  room.rows -= jobs.rows;
  room.bytes -= std::min(jobs.bytes, room.bytes);
  if (room.is_full()) return false;
  LF_TRY(const std::uint32_t requests, tables_.batches.RemoveRequests(batch, room.rows));
  count.requests += requests;
  room.rows -= requests;
  return !room.is_full();
}

Status PruningTable::Shrink(Pruning& pass) {
  constexpr std::int64_t kIncremental = 2;
  LF_TRY(const std::int64_t mode, connection_.Number("PRAGMA auto_vacuum"));
  LF_TRY(const std::int64_t unused, connection_.Number("PRAGMA freelist_count"));
  if (mode != kIncremental || unused <= kPagesPerStep)
    pass.progress().phase = Pruning::Phase::kOver;
  if (mode != kIncremental || unused == 0) return {};
  return connection_.Run(fmt::format("PRAGMA incremental_vacuum({})", kPagesPerStep).c_str());
}

Status PruningTable::Save(const Pruning& pass, WallTime now) {
  const Pruning::Progress& at = pass.progress();
  LF_TRY(Query query,
         connection_.Start("INSERT OR REPLACE INTO prunings VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"));
  const PruningCount& count = at.count;
  return query.Add(at.id)
      .Add(pass.rule().asked_by)
      .Add(at.begun_at.time_since_epoch().count())
      .Add(now.time_since_epoch().count())
      .Add(pass.rule().finished_before.time_since_epoch().count())
      .Add(at.removing.value)
      .Add(count.batches)
      .Add(count.requests)
      .Add(count.jobs)
      .Add(count.outcomes)
      .Add(count.known_failures)
      .AddChecksum()
      .Run();
}

Result<PruningCount> CountPruning(Connection& connection, const PruningRule& rule) {
  LF_TRY(Query row, connection.Start(R"sql(
    SELECT count(*), coalesce(sum(job_count), 0), coalesce(sum(finished), 0),
           coalesce(sum((SELECT count(*) FROM requests WHERE batch = b.id)), 0),
           coalesce(sum((SELECT count(*) FROM known_failures WHERE batch = b.id)), 0)
    FROM batches b
    WHERE closed = 1 AND finished = job_count AND accepted_at < ?1
      AND id < (SELECT max(id) FROM batches)
      AND coalesce((SELECT finished_at FROM outcomes WHERE batch = b.id AND sequence = b.finished),
                   accepted_at) < ?1)sql"));
  row.Add(rule.finished_before.time_since_epoch().count());
  LF_TRY_VOID(row.Next());
  PruningCount count;
  count.batches = row.Int<std::uint64_t>();
  count.jobs = row.Int<std::uint64_t>();
  count.outcomes = row.Int<std::uint64_t>();
  count.requests = row.Int<std::uint64_t>();
  count.known_failures = row.Int<std::uint64_t>();
  return count;
}

}  // namespace loopfleet::storage
