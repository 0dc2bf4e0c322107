#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "storage/outcome_repair.h"
#include "storage/sqlite/bulk_insert.h"
#include "storage/sqlite/damage.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/batch_table.h"
#include "storage/sqlite/tables/conditions_table.h"
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/outcome_table.h"
#include "storage/sqlite/tables/result_table.h"
#include "storage/sqlite/writer_lock.h"

namespace loopfleet::storage {
namespace {

constexpr std::chrono::milliseconds kLockWait{1000};
constexpr int kColumns = 25;  // of `outcomes`, the checksum included
constexpr const char* kCountKept =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name GLOB 'outcomes_damaged_*'";

// Reads the row to its checksum, and goes back to its beginning.
bool IsSound(Query& row) {
  for (int column = 0; column + 1 < kColumns; ++column) row.Skip();
  const bool matches = row.ChecksumMatches();
  row.Rewind();
  return matches;
}

// What the index of jobs says about a batch, read without the rows.
struct JobIndex {
  std::vector<std::uint32_t> jobs;  // with an outcome
  bool is_whole = true;
};

Result<JobIndex> ReadJobIndex(Connection& connection, const StoredBatch& batch) {
  JobIndex index;
  for (std::uint32_t next = 0; next <= batch.job_count;) {  // one past the last, too
    LF_TRY(Query entry, connection.Start(R"sql(
      SELECT idx FROM outcomes INDEXED BY sqlite_autoindex_outcomes_2
      WHERE batch = ? AND idx >= ? ORDER BY idx)sql"));
    entry.Add(batch.batch.value).Add(next);
    while (true) {
      const auto more = entry.Next();
      if (!more && more.error().kind != ErrorKind::kCorrupt) return std::unexpected(more.error());
      if (!more) {  // the next entry may be on another page
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

class Repairer {
 public:
  explicit Repairer(Connection& connection) : connection_(connection) {}
  Result<OutcomeRepair> Run();

 private:
  Status Rebuild(Connection& damaged);
  // Copies the sound rows of a batch into `rows` and notes its lost outcomes.
  Status CopyBatch(Connection& damaged, const StoredBatch& batch, RowFeed& rows);
  // Gives the lost sequences to jobs without an outcome: those of the index first.
  Status AssignLost(const StoredBatch& batch, const std::vector<std::uint64_t>& sequences,
                    const std::vector<std::uint32_t>& indexed, std::vector<bool>& has_outcome);
  Status SwapTables();
  Status WriteLost();
  // A lost outcome counts as a failure, whatever it was.
  Status Recount(BatchId id);

  Connection& connection_;
  ResultKeys keys_;
  ConditionsTable conditions_{connection_};
  ResultTable results_{connection_, conditions_, keys_};
  JobTable jobs_{connection_};
  OutcomeTable outcomes_{connection_, conditions_, results_, jobs_};
  BatchTable batches_{connection_};
  std::vector<Outcome> lost_;
  OutcomeRepair repair_;
};

Result<OutcomeRepair> Repairer::Run() {
  // The new epoch stops a coordinator that still writes although its lock file was removed.
  LF_TRY_VOID(connection_.Run("BEGIN IMMEDIATE; UPDATE writer SET epoch = epoch + 1"));
  // A connection that meets damage in a transaction may write nothing more in it.
  auto damaged = Connection::Open(connection_.path(), Access::kReadOnly, kBusyWait);
  Status done = damaged ? Rebuild(**damaged) : std::unexpected(damaged.error());
  if (done) done = connection_.Run(repair_.was_damaged ? "COMMIT" : "ROLLBACK");
  if (done) return std::move(repair_);
  if (connection_.InTransaction()) (void)connection_.Run("ROLLBACK");
  return std::unexpected(done.error());
}

Status Repairer::Rebuild(Connection& damaged) {
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
  LF_TRY_VOID(connection_.Run(("CREATE TABLE outcomes_repaired " + columns).c_str()));
  RowFeed rows(connection_,
               "INSERT OR ROLLBACK INTO outcomes_repaired SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,"
               "c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24 FROM row_feed");
  for (const BatchId id : ids) {
    const auto batch = batches_.Find(id);
    // A batch with a damaged row of its own is never served, so its outcomes stay behind.
    if (!batch && batch.error().kind == ErrorKind::kCorrupt) continue;
    if (!batch) return std::unexpected(batch.error());
    LF_TRY_VOID(CopyBatch(damaged, **batch, rows));
  }
  LF_TRY_VOID(rows.Flush());
  if (!repair_.was_damaged) return {};
  LF_TRY_VOID(SwapTables());
  return WriteLost();
}

Status Repairer::CopyBatch(Connection& damaged, const StoredBatch& batch, RowFeed& rows) {
  LF_TRY(const JobIndex index, ReadJobIndex(damaged, batch));
  if (!index.is_whole) repair_.was_damaged = true;
  std::vector<bool> has_outcome(batch.job_count);
  std::vector<std::uint64_t> lost;
  std::uint64_t next = 1;  // sequence
  while (next <= batch.finished) {
    LF_TRY(Query row, damaged.Start(R"sql(
      SELECT * FROM outcomes WHERE batch = ? AND sequence >= ? ORDER BY sequence)sql"));
    row.Add(batch.batch.value).Add(next);
    bool is_over = false;
    while (!is_over && next <= batch.finished) {
      const auto more = row.Next();
      if (!more && more.error().kind != ErrorKind::kCorrupt) return std::unexpected(more.error());
      if (!more) {  // the next row may be on another page
        repair_.was_damaged = true;
        lost.push_back(next++);
        break;
      }
      is_over = !*more;
      if (is_over) break;
      row.Skip();  // batch
      const auto sequence = row.Int<std::uint64_t>();
      const auto job = row.Int<std::uint32_t>();
      row.Rewind();
      for (; next < sequence && next <= batch.finished; ++next) lost.push_back(next);
      if (next > batch.finished) break;
      ++next;
      if (job < has_outcome.size() && !has_outcome[job] && IsSound(row)) {
        has_outcome[job] = true;
        LF_TRY_VOID(rows.Copy(row, kColumns).EndRow());
      } else {
        lost.push_back(sequence);
      }
    }
    if (!is_over) continue;
    for (; next <= batch.finished; ++next) lost.push_back(next);
  }
  return AssignLost(batch, lost, index.jobs, has_outcome);
}

Status Repairer::AssignLost(const StoredBatch& batch, const std::vector<std::uint64_t>& sequences,
                            const std::vector<std::uint32_t>& indexed,
                            std::vector<bool>& has_outcome) {
  // The index does not tell which sequence belonged to which job. The failures are all alike.
  std::vector<std::uint32_t> jobs = indexed;
  for (std::uint32_t job = 0; job < has_outcome.size(); ++job) jobs.push_back(job);
  auto job = jobs.begin();
  for (const std::uint64_t sequence : sequences) {
    job = std::find_if(job, jobs.end(), [&](std::uint32_t one) { return !has_outcome[one]; });
    if (job == jobs.end()) return Damaged("batches", batch.batch);
    has_outcome[*job] = true;
    // The time at which it finished is lost too. It is not before the batch was accepted.
    Outcome outcome{.job = {.batch = batch.batch, .index = *job},
                    .sequence = sequence,
                    .finished_at = batch.accepted_at};
    outcome.evaluation.verdict = Failure{
        .code = FailureCode::kStorageCorrupt,
        .message =
            Damaged("outcomes", fmt::format("{}.{}", batch.batch, sequence)).error().message};
    repair_.lost.push_back({.batch = batch.batch, .sequence = sequence});
    lost_.push_back(std::move(outcome));
  }
  return {};
}

Status Repairer::SwapTables() {
  LF_TRY(const std::int64_t kept, connection_.Number(kCountKept));
  repair_.kept_as = fmt::format("outcomes_damaged_{}", kept + 1);
  // Without the pragma the views would follow the damaged table to its new name.
  return connection_.Run(fmt::format("PRAGMA legacy_alter_table = ON;"
                                     "ALTER TABLE outcomes RENAME TO {};"
                                     "ALTER TABLE outcomes_repaired RENAME TO outcomes;"
                                     "PRAGMA legacy_alter_table = OFF",
                                     repair_.kept_as)
                             .c_str());
}

Status Repairer::WriteLost() {
  std::set<BatchId> changed;
  for (const Outcome& outcome : lost_) {
    LF_TRY_VOID(outcomes_.Insert(outcome));
    changed.insert(outcome.job.batch);
  }
  LF_TRY_VOID(outcomes_.Flush());
  for (const BatchId id : changed) LF_TRY_VOID(Recount(id));
  return batches_.Flush();
}

Status Repairer::Recount(BatchId id) {
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

struct LockedFile {
  WriterLock lock;
  std::unique_ptr<Connection> connection;
};

Result<LockedFile> OpenLocked(const std::filesystem::path& path) {
  std::error_code error;
  const auto file = std::filesystem::weakly_canonical(path, error);
  if (error || !std::filesystem::exists(file, error)) {
    return Fail(ErrorKind::kNotFound, fmt::format("there is no database {}", path.string()));
  }
  LF_TRY(WriterLock lock, WriterLock::Take(file, kLockWait));
  LF_TRY(auto connection, Connection::Open(file, Access::kReadWriteCreate, kBusyWait));
  LF_TRY_VOID(CheckOrigin(*connection));
  LF_TRY_VOID(Migrate(*connection));
  return LockedFile{.lock = std::move(lock), .connection = std::move(connection)};
}

}  // namespace

Result<OutcomeRepair> RepairOutcomes(const std::filesystem::path& path) {
  LF_TRY(const LockedFile file, OpenLocked(path));
  return Repairer(*file.connection).Run();
}

Result<std::uint64_t> DropKeptOutcomes(const std::filesystem::path& path) {
  LF_TRY(const LockedFile file, OpenLocked(path));
  LF_TRY(const std::int64_t kept, file.connection->Number(kCountKept));
  // DROP TABLE reads all pages of the table, and some cannot be read. Without their entry in the
  // schema VACUUM leaves them behind.
  LF_TRY_VOID(file.connection->RunOnSchema(R"sql(
    PRAGMA writable_schema = ON;
    DELETE FROM sqlite_schema WHERE tbl_name GLOB 'outcomes_damaged_*';
    PRAGMA writable_schema = RESET;
    VACUUM;
    PRAGMA wal_checkpoint(TRUNCATE))sql"));
  return static_cast<std::uint64_t>(kept);
}

}  // namespace loopfleet::storage
