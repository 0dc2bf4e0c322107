#include "storage/sqlite/maintenance/thinning_count.h"

#include "storage/sqlite/maintenance/retention_table.h"

namespace loopfleet::storage {
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
