#include "storage/sqlite/maintenance/retention_table.h"

#include <algorithm>

namespace loopfleet::storage {

Status RetentionTable::Begin(Thinning& pass, WallTime now) {
  Thinning::Progress& at = pass.progress();
  at.begun_at = now;
  if (pass.scope() == Thinning::Scope::kAll) return {};
  LF_TRY(Query row, connection_.Start("SELECT * FROM retention"));
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) break;
    for (int column = 0; column < 5; ++column) row.Skip();  // id .. measured_before
    const auto keep_every = row.Int<std::uint32_t>();
    const ResultId through = row.Int64();
    for (int column = 0; column < 3; ++column) row.Skip();  // results, samples, bytes
    if (!row.ChecksumMatches()) continue;                   // its results are examined again
    const bool is_as_strict =
        keep_every == 0 || (pass.rule().keep_every > 0 && keep_every >= pass.rule().keep_every);
    if (is_as_strict) at.through = std::max(at.through, through);
  }
  at.seen = at.through;
  return {};
}

Status RetentionTable::Step(Thinning& pass, WallTime now) {
  Thinning::Progress& at = pass.progress();
  if (!at.begun_at) {
    LF_TRY_VOID(Begin(pass, now));
  }
  const std::int64_t last_id = at.id;
  if (at.id == 0) {
    LF_TRY(at.id, connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM retention"));
  }
  const ResultId through_before = at.through;
  const std::uint64_t results_before = at.count.results;
  std::uint32_t looked_at = 0;
  {
    LF_TRY(Query row, connection_.Start("SELECT * FROM results WHERE id > ? ORDER BY id LIMIT ?"));
    row.Add(at.seen).Add(kRowsPerStep);
    while (results_.gathered_bytes() < kBytesPerStep) {
      LF_TRY(const bool more, row.Next());
      if (!more) {
        at.is_over = looked_at < kRowsPerStep;
        break;
      }
      ++looked_at;
      at.seen = row.Int64();
      row.Rewind();
      const auto thinned = results_.Thin(row, pass.rule(), at.id);
      if (!thinned) {
        if (thinned.error().kind != ErrorKind::kCorrupt) return std::unexpected(thinned.error());
        ++at.count.damaged;
        continue;
      }
      if (!thinned->is_old) {
        if (thinned->measured_at <= now) ++at.too_new_in_row;
        if (pass.scope() == Thinning::Scope::kAll || at.too_new_in_row < kTooNewInRow) continue;
        at.is_over = true;
        break;
      }
      at.too_new_in_row = 0;
      at.through = at.seen;
      if (thinned->samples_taken == 0) continue;
      ++at.count.results;
      at.count.samples += thinned->samples_taken;
      at.count.bytes += thinned->samples_taken * kSampleBytes;
    }
  }
  LF_TRY_VOID(results_.Flush());
  if (at.count.results == 0) {
    at.id = last_id;
    return {};
  }
  const bool is_news = at.count.results > results_before || at.through > through_before;
  return is_news ? Save(pass, now) : Status{};
}

Status RetentionTable::Save(const Thinning& pass, WallTime now) {
  const Thinning::Progress& at = pass.progress();
  LF_TRY(Query query,
         connection_.Start("INSERT OR REPLACE INTO retention VALUES (?,?,?,?,?,?,?,?,?,?,?)"));
  return query.Add(at.id)
      .Add(pass.rule().asked_by)
      .Add(at.begun_at->time_since_epoch().count())
      .Add(now.time_since_epoch().count())
      .Add(pass.rule().measured_before.time_since_epoch().count())
      .Add(pass.rule().keep_every)
      .Add(at.through)
      .Add(at.count.results)
      .Add(at.count.samples)
      .Add(at.count.bytes)
      .AddChecksum()
      .Run();
}

Result<ThinningCount> CountThinning(Connection& connection, const ThinningRule& rule) {
  LF_TRY(Query row, connection.Start(R"sql(
    SELECT length(sample_flags), samples_before FROM results WHERE measured_at < ?)sql"));
  row.Add(rule.measured_before.time_since_epoch().count());
  ThinningCount count;
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return count;
    const auto here = row.Int<std::uint32_t>();
    const auto before = static_cast<std::uint32_t>(row.OptionalInt64().value_or(here));
    const std::uint32_t left = SamplesLeft(rule, before);
    if (here <= left) continue;
    ++count.results;
    count.samples += here - left;
    count.bytes += (here - left) * kSampleBytes;
  }
}

}  // namespace loopfleet::storage
