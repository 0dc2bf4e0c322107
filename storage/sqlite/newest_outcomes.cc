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
  brief.is_measured = source == EnumName(OutcomeSource::kMeasured) || source == kSameCodeSource;
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

std::size_t TextBytesOf(const BriefOutcome& brief) {
  return brief.benchmark.size() + brief.actions.size() + brief.worker.size() +
         brief.hardware_class.size() + brief.observed.size() +
         (brief.failure ? brief.failure->message.size() : 0);
}

}  // namespace

// A job may have 17 KiB of actions, a probe 512 KiB of values; in a table of many outcomes their
// beginning will do.
Result<BriefOutcomes> ReadNewestOutcomes(Connection& connection, std::uint32_t max,
                                         std::size_t max_bytes) {
  LF_TRY(Query query, connection.Start(R"sql(
    SELECT o.batch, o.idx, o.worker, o.finished_at,
           o.queue_ns + o.replay_ns + o.compile_ns + o.verify_ns + o.measure_ns, o.measure_ns,
           o.source, o.failure_code,
           substr(coalesce(o.failure_message, ''), 1, 1000) ||
             iif(length(o.failure_message) > 1000, ' …', ''),
           coalesce(j.benchmark, ''),
           substr(j.actions, 1, 1000) || iif(length(j.actions) > 1000, ' …', ''),
           coalesce(h.class, ''), coalesce(o.result, 0),
           iif(b.kind = 'probe' AND length(b."values") <= 4096, b."values", ''),
           r.flop_count, r.elapsed_ns, r.spread, r.grade,
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
  BriefOutcomes newest;
  for (std::size_t bytes = 0; bytes < max_bytes;) {
    LF_TRY(const bool more, query.Next());
    if (!more) {
      newest.is_all = newest.outcomes.size() < max;
      break;
    }
    bytes += TextBytesOf(newest.outcomes.emplace_back(Read(query)));
  }
  return newest;
}

}  // namespace loopfleet::storage
