#include "storage/sqlite/maintenance/pruning_count.h"

namespace loopfleet::storage {
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
