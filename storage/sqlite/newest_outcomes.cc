#include "storage/sqlite/newest_outcomes.h"

#include <utility>

namespace loopfleet::storage {
namespace {

BriefOutcome Read(Query& query) {
  BriefOutcome brief;
  brief.job.batch.value = query.Int<std::uint64_t>();
  brief.job.index = query.Int<std::uint32_t>();
  brief.worker = query.Text();
  brief.finished_at = WallTime(Nanos(query.Int64()));
  brief.took = Nanos(query.Int64());
  brief.measure = Nanos(query.Int64());
  const std::string_view source = query.Text();
  brief.is_measured =
      source == OutcomeSourceName(OutcomeSource::kMeasured) || source == kSameCodeSource;
  const auto code = query.OptionalInt64();
  std::string message(query.Text());
  brief.benchmark = query.Text();
  brief.actions = query.Text();
  brief.hardware_class = query.Text();
  brief.is_observed = query.Int64() < 0;
  brief.observed = query.Text();
  if (brief.is_observed) return brief;
  if (code) {
    const auto known = FailureCodeOf(static_cast<std::uint16_t>(*code));
    brief.failure = BriefOutcome::Failed{.code = known.value_or(FailureCode::kStorageCorrupt),
                                         .message = std::move(message)};
    return brief;
  }
  const double flop_count = query.Double();
  BriefOutcome::Figures figures;
  figures.elapsed_ns = query.Double();
  // flop / ns is Gflop / s
  figures.gflop_per_second = figures.elapsed_ns > 0 ? flop_count / figures.elapsed_ns : 0;
  figures.spread = query.Double();
  figures.grade = query.Text();
  figures.is_suspect = query.Int64() != 0;
  brief.figures = std::move(figures);
  return brief;
}

}  // namespace

Result<std::vector<BriefOutcome>> ReadNewestOutcomes(Connection& connection, std::uint32_t max) {
  LF_TRY(Query query, connection.Start(R"sql(
    SELECT o.batch, o.idx, o.worker, o.finished_at,
           o.queue_ns + o.replay_ns + o.compile_ns + o.verify_ns + o.measure_ns, o.measure_ns,
           o.source, o.failure_code, coalesce(o.failure_message, ''), coalesce(j.benchmark, ''),
           j.actions, coalesce(h.class, ''), coalesce(o.result, 0),
           CASE WHEN b.kind = 'probe' THEN b."values" ELSE '' END, r.flop_count, r.elapsed_ns, r.spread, r.grade,
           coalesce(s.result, so.result) IS NOT NULL
    FROM outcomes o
    CROSS JOIN jobs j ON j.batch = o.batch AND j.idx = o.idx
    LEFT JOIN results r ON r.id = o.result
    LEFT JOIN observations b ON b.id = -o.result
    LEFT JOIN conditions c ON c.id = coalesce(r.conditions, b.conditions, o.failed_conditions)
    LEFT JOIN hardware h ON h.id = c.hardware
    LEFT JOIN suspect_results s ON s.result = o.result
    LEFT JOIN copied_results cr ON cr.result = o.result
    LEFT JOIN suspect_results so ON so.result = cr.original
    ORDER BY o.batch DESC, o.sequence DESC LIMIT ?)sql"));
  query.Add(max);
  std::vector<BriefOutcome> outcomes;
  while (true) {
    LF_TRY(const bool more, query.Next());
    if (!more) return outcomes;
    outcomes.push_back(Read(query));
  }
}

}  // namespace loopfleet::storage
