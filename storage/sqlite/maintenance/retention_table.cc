#include "storage/sqlite/maintenance/retention_table.h"

#include <algorithm>

namespace loopfleet::storage {

Status RetentionTable::Begin(Thinning& pass, WallTime now) {
  pass.has_begun_ = true;
  pass.begun_at_ = now;
  if (pass.scope_ == Thinning::Scope::kAll) return {};
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
        keep_every == 0 || (pass.rule_.keep_every > 0 && keep_every >= pass.rule_.keep_every);
    if (is_as_strict) pass.through_ = std::max(pass.through_, through);
  }
  pass.seen_ = pass.through_;
  return {};
}

Status RetentionTable::Step(Thinning& pass, WallTime now) {
  if (!pass.has_begun_) {
    LF_TRY_VOID(Begin(pass, now));
  }
  const std::int64_t last_id = pass.id_;
  if (pass.id_ == 0) {
    LF_TRY(pass.id_, connection_.Number("SELECT coalesce(max(id), 0) + 1 FROM retention"));
  }
  const ResultId through_before = pass.through_;
  const std::uint64_t results_before = pass.count_.results;
  std::uint32_t looked_at = 0;
  {
    LF_TRY(Query row, connection_.Start("SELECT * FROM results WHERE id > ? ORDER BY id LIMIT ?"));
    row.Add(pass.seen_).Add(kRowsPerStep);
    while (results_.gathered_bytes() < kBytesPerStep) {
      LF_TRY(const bool more, row.Next());
      if (!more) {
        pass.is_over_ = looked_at < kRowsPerStep;
        break;
      }
      ++looked_at;
      pass.seen_ = row.Int64();
      row.Rewind();
      const auto thinned = results_.Thin(row, pass.rule_, pass.id_);
      if (!thinned) {
        if (thinned.error().kind != ErrorKind::kCorrupt) return std::unexpected(thinned.error());
        ++pass.count_.damaged;
        continue;
      }
      if (!thinned->is_old) {
        ++pass.too_new_in_row_;
        if (pass.scope_ == Thinning::Scope::kAll || pass.too_new_in_row_ < kTooNewInRow) continue;
        pass.is_over_ = true;
        break;
      }
      pass.too_new_in_row_ = 0;
      pass.through_ = pass.seen_;
      if (thinned->samples_taken == 0) continue;
      ++pass.count_.results;
      pass.count_.samples += thinned->samples_taken;
      pass.count_.bytes += thinned->samples_taken * kSampleBytes;
    }
  }
  LF_TRY_VOID(results_.Flush());
  if (pass.count_.results == 0) {
    pass.id_ = last_id;
    return {};
  }
  const bool is_news = pass.count_.results > results_before || pass.through_ > through_before;
  return is_news ? Save(pass, now) : Status{};
}

Status RetentionTable::Save(const Thinning& pass, WallTime now) {
  LF_TRY(Query query,
         connection_.Start("INSERT OR REPLACE INTO retention VALUES (?,?,?,?,?,?,?,?,?,?,?)"));
  return query.Add(pass.id_)
      .Add(pass.rule_.asked_by)
      .Add(pass.begun_at_.time_since_epoch().count())
      .Add(now.time_since_epoch().count())
      .Add(pass.rule_.measured_before.time_since_epoch().count())
      .Add(pass.rule_.keep_every)
      .Add(pass.through_)
      .Add(pass.count_.results)
      .Add(pass.count_.samples)
      .Add(pass.count_.bytes)
      .AddChecksum()
      .Run();
}

}  // namespace loopfleet::storage
