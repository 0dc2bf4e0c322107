#include "storage/sqlite/maintenance/outcome_salvage.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "storage/sqlite/bulk_insert.h"
#include "storage/sqlite/damage.h"

namespace loopfleet::storage {
namespace {

constexpr std::chrono::milliseconds kReadBusyWait{5000};
constexpr int kColumns = 25;  // of `outcomes`, the checksum included

// Reads the row to its checksum, and goes back to its beginning.
bool IsSound(Query& row) {
  for (int column = 0; column + 1 < kColumns; ++column) row.Skip();
  const bool matches = row.ChecksumMatches();
  row.Rewind();
  return matches;
}

}  // namespace

Result<bool> OutcomeSalvage::IsNeeded(std::span<const StoredBatch> batches) {
  for (const StoredBatch& batch : batches) {
    LF_TRY(const Index index, ReadIndex(connection_, batch));
    if (!index.is_whole) return true;
    LF_TRY(Query end,
           connection_.Start("SELECT idx FROM outcomes WHERE batch = ? AND sequence >= ?"));
    end.Add(batch.batch.value).Add(batch.finished);
    const auto read = end.Next();
    if (read) continue;
    if (read.error().kind != ErrorKind::kCorrupt) return std::unexpected(read.error());
    return true;
  }
  return false;
}

Result<OutcomeSalvage::Index> OutcomeSalvage::ReadIndex(Connection& connection,
                                                        const StoredBatch& batch) {
  Index index;
  for (std::uint32_t next = 0; next <= batch.job_count;) {  // beyond the last, too
    LF_TRY(Query entry, connection.Start(R"sql(
      SELECT idx FROM outcomes INDEXED BY sqlite_autoindex_outcomes_2
      WHERE batch = ? AND idx >= ? ORDER BY idx)sql"));
    entry.Add(batch.batch.value).Add(next);
    while (true) {
      const auto more = entry.Next();
      if (!more && more.error().kind != ErrorKind::kCorrupt) return std::unexpected(more.error());
      if (!more) {  // those beside it may be on another page
        index.is_whole = false;
        ++next;
        break;
      }
      if (!*more) return index;
      next = entry.Int<std::uint32_t>() + 1;
      if (next <= batch.job_count) index.jobs.push_back(next - 1);
    }
  }
  return index;
}

Result<OutcomeSalvage::Salvaged> OutcomeSalvage::Run() {
  Salvaged salvaged;
  LF_TRY_VOID(connection_.Run("BEGIN IMMEDIATE"));
  // A connection that meets damage in a transaction may write nothing more in it.
  auto opened = Connection::Open(connection_.path(), Access::kReadOnly, kReadBusyWait);
  if (!opened) {
    (void)connection_.Run("ROLLBACK");
    return std::unexpected(opened.error());
  }
  Connection& damaged = **opened;
  Status made = MakeAnew(damaged, salvaged);
  if (made) made = connection_.Run(salvaged.met_damage ? "COMMIT" : "ROLLBACK");
  if (made) return salvaged;
  if (connection_.InTransaction()) (void)connection_.Run("ROLLBACK");
  outcomes_.Forget();
  return std::unexpected(made.error());
}

Status OutcomeSalvage::MakeAnew(Connection& damaged, Salvaged& salvaged) {
  std::string columns;
  std::vector<BatchId> ids;
  {
    LF_TRY(Query table, connection_.Start("SELECT sql FROM sqlite_schema WHERE name = 'outcomes'"));
    LF_TRY_VOID(table.Next());
    columns = table.Text();
    columns.erase(0, columns.find('('));
    LF_TRY(Query batch, connection_.Start("SELECT id FROM batches WHERE finished > 0 ORDER BY id"));
    while (true) {
      LF_TRY(const bool more, batch.Next());
      if (!more) break;
      ids.push_back({batch.Int<std::uint64_t>()});
    }
  }
  LF_TRY_VOID(connection_.Run(("CREATE TABLE outcomes_salvaged " + columns).c_str()));
  std::vector<Outcome> lost;
  RowFeed rows(connection_,
               "INSERT OR ROLLBACK INTO outcomes_salvaged SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,"
               "c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24 FROM row_feed");
  for (const BatchId id : ids) LF_TRY_VOID(Salvage(damaged, id, rows, lost, salvaged.met_damage));
  LF_TRY_VOID(rows.Flush());
  if (!salvaged.met_damage) return {};
  LF_TRY(const std::int64_t number,
         connection_.Number("SELECT count(*) + 1 FROM sqlite_schema "
                            "WHERE type = 'table' AND name GLOB 'outcomes_damaged_*'"));
  salvaged.left_in = fmt::format("outcomes_damaged_{}", number);
  // Without the pragma the views would follow the damaged table to its new name.
  LF_TRY_VOID(connection_.Run(fmt::format("PRAGMA legacy_alter_table = ON;"
                                          "ALTER TABLE outcomes RENAME TO {};"
                                          "ALTER TABLE outcomes_salvaged RENAME TO outcomes;"
                                          "PRAGMA legacy_alter_table = OFF",
                                          salvaged.left_in)
                                  .c_str()));
  std::set<BatchId> changed;
  for (const Outcome& outcome : lost) {
    LF_TRY_VOID(outcomes_.Insert(outcome));
    salvaged.lost.push_back({.batch = outcome.job.batch, .sequence = outcome.sequence});
    changed.insert(outcome.job.batch);
  }
  LF_TRY_VOID(outcomes_.Flush());
  for (const BatchId id : changed) LF_TRY_VOID(Recount(id));
  return {};
}

// What is lost has failed, whatever it was.
Status OutcomeSalvage::Recount(BatchId id) {
  LF_TRY(auto batch, batches_.Find(id));
  {
    LF_TRY(Query count, connection_.Start(R"sql(
      SELECT count(*) FILTER (WHERE result IS NULL), count(*) FILTER (WHERE source = 'stored')
      FROM outcomes WHERE batch = ?)sql"));
    count.Add(id.value);
    LF_TRY_VOID(count.Next());
    batch->failed = count.Int<std::uint32_t>();
    batch->from_store = count.Int<std::uint32_t>();
  }
  return batches_.Save(*batch);
}

Status OutcomeSalvage::Salvage(Connection& damaged, BatchId id, RowFeed& rows,
                               std::vector<Outcome>& lost, bool& met_damage) {
  const auto batch = batches_.Find(id);
  // Whose own row is damaged, too: nobody is told of its outcomes (Store::RebuildBatches).
  if (!batch && batch.error().kind == ErrorKind::kCorrupt) return {};
  if (!batch) return std::unexpected(batch.error());
  LF_TRY(const Index index, ReadIndex(damaged, **batch));
  if (!index.is_whole) met_damage = true;
  const std::uint32_t finished = (*batch)->finished;
  std::vector<bool> has_outcome((*batch)->job_count);
  std::vector<std::uint64_t> gone;  // sequences
  std::uint64_t next = 1;
  while (next <= finished) {
    LF_TRY(Query row, damaged.Start(R"sql(
      SELECT * FROM outcomes WHERE batch = ? AND sequence >= ? ORDER BY sequence)sql"));
    row.Add(id.value).Add(next);
    bool is_over = false;
    while (!is_over && next <= finished) {
      const auto more = row.Next();
      if (!more && more.error().kind != ErrorKind::kCorrupt) return std::unexpected(more.error());
      if (!more) {  // those beside it may be on another page
        met_damage = true;
        gone.push_back(next++);
        break;
      }
      is_over = !*more;
      if (is_over) break;
      row.Skip();  // batch
      const auto sequence = row.Int<std::uint64_t>();
      const auto job = row.Int<std::uint32_t>();
      row.Rewind();
      for (; next < sequence && next <= finished; ++next) gone.push_back(next);
      if (next > finished) break;
      ++next;
      if (job < has_outcome.size() && !has_outcome[job] && IsSound(row)) {
        has_outcome[job] = true;
        LF_TRY_VOID(rows.Copy(row, kColumns).EndRow());
      } else {
        gone.push_back(sequence);
      }
    }
    if (!is_over) continue;
    for (; next <= finished; ++next) gone.push_back(next);
  }
  // Which of them was whose, the index alone does not tell; they are all alike.
  std::vector<std::uint32_t> jobs = index.jobs;
  for (std::uint32_t job = 0; job < has_outcome.size(); ++job) jobs.push_back(job);
  auto job = jobs.begin();
  for (const std::uint64_t sequence : gone) {
    job = std::find_if(job, jobs.end(), [&](std::uint32_t one) { return !has_outcome[one]; });
    if (job == jobs.end()) return Damaged("batches", id);
    has_outcome[*job] = true;
    // When it finished, nobody knows; not before it was accepted.
    Outcome outcome{.job = {.batch = id, .index = *job},
                    .sequence = sequence,
                    .finished_at = (*batch)->accepted_at};
    outcome.evaluation.verdict =
        Failure{.code = FailureCode::kStorageCorrupt,
                .message = Damaged("outcomes", fmt::format("{}.{}", id, sequence)).error().message};
    lost.push_back(std::move(outcome));
  }
  return {};
}

}  // namespace loopfleet::storage
