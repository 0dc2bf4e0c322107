#include "storage/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/unique_fd.h"
#include "storage/sqlite/log_folder.h"
#include "storage/sqlite/maintenance/pruning_table.h"
#include "storage/sqlite/maintenance/retention_table.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/tables/batch_table.h"
#include "storage/sqlite/tables/batches_in_work.h"
#include "storage/sqlite/tables/best_table.h"
#include "storage/sqlite/tables/conditions_table.h"
#include "storage/sqlite/tables/drain_table.h"
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/outcome_table.h"
#include "storage/sqlite/tables/result_table.h"
#include "storage/sqlite/tables/suspicion_table.h"
#include "storage/sqlite/writer_lock.h"
#include "storage/thinning.h"

namespace loopfleet::storage {
namespace {

// The lock belongs to the file itself, whichever link names it.
std::filesystem::path Canonical(const std::filesystem::path& path) {
  std::error_code error;
  auto canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical;
}

// Creates the file for its owner only. Never opens an existing file: closing it would drop the
// locks that this process's other connections hold on it.
void CreatePrivately(const std::filesystem::path& path) {
  const UniqueFd created(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

// If SQLite cannot create a log it keeps a rollback journal, and reports that in a row, not as an
// error. That journal would be slow, and a risk to acknowledged rows: see Connection::Open.
Status UseLog(Connection& connection) {
  LF_TRY(Query query, connection.Start("PRAGMA journal_mode = WAL"));
  LF_TRY(const bool answered, query.Next());
  if (answered && query.Text() == "wal") return {};
  return Fail(ErrorKind::kSystem,
              fmt::format("database {}: cannot keep a log (journal_mode = WAL) beside it: is the "
                          "directory writable, and a file system that can share memory?",
                          connection.path()));
}

// Lets the file return unused pages to the disk in steps. Takes effect with the next VACUUM: at
// once in a new file, with SqliteStore::Compact in one of an earlier version.
Status LetItShrink(Connection& connection) {
  constexpr std::int64_t kIncremental = 2;
  LF_TRY(const std::int64_t mode, connection.Number("PRAGMA auto_vacuum"));
  if (mode == kIncremental) return {};
  LF_TRY_VOID(connection.Run("PRAGMA auto_vacuum = INCREMENTAL"));
  LF_TRY(const std::int64_t objects, connection.Number("SELECT count(*) FROM sqlite_schema"));
  return objects == 0 ? connection.Run("VACUUM") : Status{};
}

Status Configure(Connection& connection, const StoreOptions& options) {
  LF_TRY_VOID(UseLog(connection));
  LF_TRY_VOID(LetItShrink(connection));
  LF_TRY_VOID(connection.Run(R"sql(
    PRAGMA cache_size = -65536;              -- KiB
    -- The constraints are for other writers. Here each table checks what it is given in C++:
    -- evaluating them costs as much as the rest of a row.
    PRAGMA ignore_check_constraints = ON;
    PRAGMA journal_size_limit = 67108864;    -- what a long reader let the log grow to is given back
  )sql"));
  if (options.max_file_bytes == 0) return {};
  LF_TRY(const std::int64_t page_bytes, connection.Number("PRAGMA page_size"));
  const auto pages = options.max_file_bytes / static_cast<std::uint64_t>(page_bytes);
  return connection.Run(fmt::format("PRAGMA max_page_count = {}", pages).c_str());
}

Status FillFailureCodes(Connection& connection) {
  for (const FailureInfo& info : FailureTable()) {
    LF_TRY(Query query, connection.Start("INSERT OR REPLACE INTO failure_codes VALUES (?,?,?,?)"));
    LF_TRY_VOID(query.Add(static_cast<int>(info.code))
                    .Add(info.name)
                    .Add(info.policy.is_retryable)
                    .Add(info.advice)
                    .Run());
  }
  return {};
}

// What this start found in the table `writer`, and made of it.
struct Start {
  std::uint64_t epoch = 0;
  Uuid incarnation;
  std::uint64_t first_batch = 1;
};

// Notes what is still known of a restore by a program of schema version 21, which noted nothing.
Status NoteEarlierRestore(Connection& connection) {
  return connection.Run(R"sql(
    INSERT OR IGNORE INTO restores SELECT
      first_batch, (SELECT coalesce(max(id), 0) FROM batches WHERE id < first_batch), '{}',
      zeroblob(16)
    FROM writer WHERE first_batch > 1)sql");
}

// Begins another incarnation if the file is a restored snapshot, and notes which one that leaves,
// which numbers it skips and which batches it goes on with. How far the numbers jump is random in
// part: two restores of one snapshot rarely begin with the same ones. Where their ranges meet, the
// incarnation tells them apart.
Status LeaveSnapshot(Connection& connection) {
  LF_TRY(const std::int64_t is_snapshot, connection.Number("SELECT is_snapshot FROM writer"));
  if (is_snapshot == 0) return {};
  log::Warning("store.snapshot_restored path={}", connection.path());
  return connection.Run(R"sql(
    UPDATE writer SET
      is_snapshot = 0, epoch = epoch + 1000 + abs(random() % 1000),
      first_batch = max(first_batch, (SELECT coalesce(max(id), 0) + 1 FROM batches))
                    + 1000000 + abs(random() % 1000000);
    INSERT INTO restores SELECT
      first_batch, (SELECT coalesce(max(id), 0) FROM batches),
      (SELECT json_group_object(CAST(id AS TEXT), finished) FROM batches
       WHERE closed = 0 OR finished < job_count),
      incarnation
    FROM writer;
    UPDATE writer SET incarnation = randomblob(16))sql");
}

Result<Start> ReadStart(Connection& connection) {
  LF_TRY(Query row, connection.Start("SELECT epoch, first_batch, incarnation FROM writer"));
  LF_TRY(const bool found, row.Next());
  if (!found) return Fail(ErrorKind::kCorrupt, "table writer is empty");
  Start start{.epoch = row.Int<std::uint64_t>()};
  start.first_batch = row.Int<std::uint64_t>();
  const auto incarnation = row.Blob();
  if (incarnation.size() != start.incarnation.bytes.size()) {
    return Fail(ErrorKind::kCorrupt, "the incarnation in table writer is not 16 bytes");
  }
  std::ranges::copy(incarnation, start.incarnation.bytes.begin());
  return start;
}

// Makes this start the only one that may write.
Result<Start> BeginEpoch(Connection& connection) {
  LF_TRY_VOID(connection.Run("BEGIN IMMEDIATE"));
  LF_TRY_VOID(NoteEarlierRestore(connection));
  LF_TRY_VOID(LeaveSnapshot(connection));
  LF_TRY_VOID(connection.Run("UPDATE writer SET epoch = epoch + 1"));
  LF_TRY_VOID(FillFailureCodes(connection));
  LF_TRY(const Start start, ReadStart(connection));
  LF_TRY_VOID(connection.Run("COMMIT"));
  return start;
}

}  // namespace

struct SqliteStore::Impl {
  Impl(WriterLock taken, std::unique_ptr<Connection> opened, std::unique_ptr<LogFolder> folding,
       std::filesystem::path file, const Start& started, const StoreOptions& options)
      : lock(std::move(taken)),
        connection(std::move(opened)),
        folder(std::move(folding)),
        path(std::move(file)),
        start(started),
        keys(std::make_shared<ResultKeys>(options.run_entries)) {}

  Status ApplyAll(WriteGroup group);
  Status RunPrepared(const char* statement);
  void Undo();
  Status CheckEpoch();
  Status On(const JobsAccepted& accepted);
  Status On(const JobFinished& finished);
  Status On(const JobsAnswered& answered);
  Status Finish(JobId job, std::uint64_t sequence, const Evaluation& evaluation,
                OutcomeSource source);
  Status On(const BatchCancelled& cancelled);
  Status On(const BatchClosed& closed);
  Status On(const ResultsSuspected& suspected);
  Status On(const ResultDoubted& doubted);
  Status Flag(Suspicion suspicion);
  Status Flush();
  Status On(const WorkersDrained& drained) { return drains.Save(drained); }
  Status On(const WorkersResumed& resumed) { return drains.Remove(resumed.target); }
  Status RecordKnownFailure(const JobFinished& finished);
  // Runs the next step of a pass of maintenance, in a transaction.
  template <class Table, class Pass>
  Status Step(Table& table, Pass& pass, WallTime now);
  Status RebuildBatches();
  Status LoadResultKeys();

  WriterLock lock;  // freed last
  std::unique_ptr<Connection> connection;
  std::unique_ptr<LogFolder> folder;
  const std::filesystem::path path;
  const Start start;
  const std::shared_ptr<ResultKeys> keys;
  ConditionsTable conditions{*connection};
  ResultTable results{*connection, conditions, *keys};
  JobTable jobs{*connection};
  OutcomeTable outcomes{*connection, conditions, results, jobs};
  BestTable bests{*connection, jobs, results};
  BatchTable batches{*connection};
  BatchesInWork in_work{batches};
  DrainTable drains{*connection};
  RetentionTable retention{*connection, results};
  PruningTable prunings{
      *connection,
      {.batches = batches, .jobs = jobs, .outcomes = outcomes, .failures = keys->failures()}};
  SuspicionTable suspicions{*connection};
  // Rows that the current transaction may still write to `best_schedules`: each costs as much as a
  // third of a job, and no fleet measures so many programs between two commits.
  static constexpr std::uint32_t kBestsPerCommit = 64;
  std::uint32_t bests_left = 0;
  bool has_more_to_flag = true;       // false: there is no suspicion
  std::uint64_t damaged_batches = 0;  // at the start
};

Result<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::filesystem::path& path,
                                                       const StoreOptions& options) {
  const std::filesystem::path file = Canonical(path);
  LF_TRY(WriterLock lock, WriterLock::Take(file, kLockWait));
  CreatePrivately(file);
  LF_TRY(auto connection, Connection::Open(file, Access::kReadWriteCreate, kBusyWait));
  auto folder = std::make_unique<LogFolder>(
      *connection, file,
      LogFolder::Options{.beside_pages = options.fold_pages, .writer_pages = options.log_pages});
  LF_TRY_VOID(CheckOrigin(*connection));
  LF_TRY_VOID(Configure(*connection, options));
  LF_FAILPOINT("store.opened");
  LF_TRY_VOID(Migrate(*connection));
  LF_FAILPOINT("store.migrated");
  LF_TRY(const Start start, BeginEpoch(*connection));
  LF_FAILPOINT("store.epoch_begun");
  auto impl = std::make_unique<Impl>(std::move(lock), std::move(connection), std::move(folder),
                                     file, start, options);
  LF_TRY_VOID(impl->RebuildBatches());
  LF_TRY_VOID(impl->LoadResultKeys());
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(impl)));
}

SqliteStore::SqliteStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteStore::~SqliteStore() = default;

std::uint64_t SqliteStore::epoch() const { return impl_->start.epoch; }

const Uuid& SqliteStore::incarnation() const { return impl_->start.incarnation; }

std::shared_ptr<const ResultKeys> SqliteStore::result_keys() const { return impl_->keys; }

Status SqliteStore::Impl::LoadResultKeys() {
  Status loaded = keys->Refresh(*connection, conditions);
  if (!loaded && loaded.error().kind == ErrorKind::kCorrupt) {
    // Runs hold nothing that the results do not: damaged ones are rebuilt.
    log::Warning("store.runs_made_again reason={}", loaded.error().message);
    LF_TRY_VOID(connection->Run("BEGIN IMMEDIATE"));
    Status dropped = keys->DropUnknownRuns(*connection);
    if (dropped) dropped = connection->Run("COMMIT");
    if (!dropped && connection->InTransaction()) (void)connection->Run("ROLLBACK");
    LF_TRY_VOID(std::move(dropped));
    loaded = keys->Refresh(*connection, conditions);
  }
  LF_TRY_VOID(std::move(loaded));
  LF_TRY_VOID(keys->ResumeMerges(*connection));
  LF_TRY_VOID(keys->failures().Load(*connection, conditions));
  // Entries left by an earlier version, or by a start that ended before it sealed them.
  while (keys->HasEntriesToSeal()) {
    LF_TRY_VOID(connection->Run("BEGIN IMMEDIATE"));
    Status sealed = keys->WriteRuns(*connection);
    if (sealed) sealed = connection->Run("COMMIT");
    if (!sealed) {
      if (connection->InTransaction()) (void)connection->Run("ROLLBACK");
      keys->Forget();
      // If the disk is full they stay in memory, and the next Apply() tries again.
      return sealed.error().kind == ErrorKind::kFull ? Status{} : sealed;
    }
    keys->Publish({});
  }
  return {};
}

// Rebuilds damaged rows of unfinished batches, so that the jobs of these and of other batches can
// be recovered.
Status SqliteStore::Impl::RebuildBatches() {
  LF_TRY(const std::vector<BatchId> damaged, batches.DamagedUnfinished());
  damaged_batches = damaged.size();
  for (const BatchId id : damaged) {
    const auto rebuilt = batches.Rebuild(id);
    Status saved;
    if (rebuilt) {
      log::Warning("store.batch_rebuilt batch={}", id);
      saved = batches.Save(*rebuilt);
      if (saved) saved = batches.Flush();
      batches.Forget();
    } else {
      log::Error("store.batch_lost batch={} reason={}", id, rebuilt.error().message);
      if (rebuilt.error().kind != ErrorKind::kCorrupt) return std::unexpected(rebuilt.error());
    }
    // If the disk is full the batch stays damaged, and is skipped until the next start.
    if (!saved && saved.error().kind != ErrorKind::kFull) return saved;
  }
  return {};
}

Result<Recovery> SqliteStore::RecoverBatches() {
  Recovery recovery{.epoch = impl_->start.epoch, .incarnation = impl_->start.incarnation};
  recovery.damaged_batches = impl_->damaged_batches;
  LF_TRY(const std::uint64_t next_batch, impl_->batches.NextId());
  recovery.next_batch = std::max(next_batch, impl_->start.first_batch);
  LF_TRY(recovery.unfinished, impl_->batches.ListUnfinished());
  LF_TRY(recovery.reference_clocks, impl_->conditions.ReferenceClocks());
  LF_TRY(recovery.drains, impl_->drains.List());
  return recovery;
}

Result<std::unique_ptr<StoreReader>> SqliteStore::OpenReader() {
  return SqliteReader::Open(impl_->path, impl_->keys);
}

Status SqliteStore::Apply(WriteGroup group) {
  Status applied = impl_->ApplyAll(group);
  if (applied) {
    impl_->in_work.Committed();
    impl_->keys->Publish(impl_->results.TakeAdded());
    impl_->keys->failures().Publish();
    const auto suspects = [](const Write& write) {
      return std::holds_alternative<ResultsSuspected>(write) ||
             std::holds_alternative<ResultDoubted>(write);
    };
    if (std::ranges::any_of(group | std::views::join, suspects)) impl_->keys->Invalidate();
    return {};
  }
  impl_->Undo();
  return applied;
}

std::uint64_t SqliteStore::TakeDamagedCount() { return impl_->in_work.TakeDamagedCount(); }

// SQLite itself rolls back after some errors. If this rollback fails, SQLite repeats it when the
// file is next opened.
void SqliteStore::Impl::Undo() {
  if (connection->InTransaction()) (void)connection->Run("ROLLBACK");
  in_work.RolledBack();
  batches.Forget();
  conditions.Forget();
  jobs.Forget();
  results.Forget();
  outcomes.Forget();
  bests.Forget();
  keys->Forget();
  keys->failures().Forget();
}

bool SqliteStore::HasMoreToFlag() const { return impl_->has_more_to_flag; }

Status SqliteStore::FlagMore() {
  bool is_over = false;
  const auto step = [&]() -> Status {
    LF_TRY_VOID(impl_->connection->Run("BEGIN IMMEDIATE"));
    LF_TRY_VOID(impl_->CheckEpoch());
    LF_TRY(auto suspicion, impl_->suspicions.Oldest());
    is_over = !suspicion;
    if (suspicion) {
      LF_TRY_VOID(impl_->Flag(*std::move(suspicion)));
    }
    return impl_->connection->Run("COMMIT");
  };
  const Status done = step();
  if (!done) {
    impl_->Undo();
    return done;
  }
  impl_->keys->failures().Publish();
  if (is_over) impl_->keys->Invalidate();  // the workers' later results answer from now on
  impl_->has_more_to_flag = !is_over;
  return {};
}

Status SqliteStore::Thin(Thinning& pass, WallTime now) {
  return impl_->Step(impl_->retention, pass, now);
}

Status SqliteStore::Prune(Pruning& pass, WallTime now) {
  LF_TRY_VOID(impl_->Step(impl_->prunings, pass, now));
  impl_->in_work.Forget();
  impl_->keys->failures().Publish();
  return {};
}

template <class Table, class Pass>
Status SqliteStore::Impl::Step(Table& table, Pass& pass, WallTime now) {
  Pass next = pass;  // replaces `pass` once the step is on disk
  const auto step = [&]() -> Status {
    LF_TRY_VOID(connection->Run("BEGIN IMMEDIATE"));
    LF_TRY_VOID(CheckEpoch());
    LF_TRY_VOID(table.Step(next, now));
    return connection->Run("COMMIT");
  };
  Status done = step();
  if (!done) {
    Undo();
    return done;
  }
  pass = std::move(next);
  return {};
}

Result<std::uint64_t> SqliteStore::ForgetFailures(const FailureFilter& filter) {
  std::uint64_t count = 0;
  const auto forget = [&]() -> Status {
    LF_TRY_VOID(impl_->connection->Run("BEGIN IMMEDIATE"));
    LF_TRY_VOID(impl_->CheckEpoch());
    LF_TRY(count, impl_->keys->failures().Remove(*impl_->connection, filter));
    return impl_->connection->Run("COMMIT");
  };
  if (Status done = forget(); !done) {
    impl_->Undo();
    return std::unexpected(std::move(done).error());
  }
  impl_->keys->failures().Publish();
  return count;
}

Status SqliteStore::Compact() {
  LF_TRY_VOID(impl_->CheckEpoch());
  LF_TRY_VOID(impl_->connection->Run("VACUUM"));
  return impl_->connection->Run("PRAGMA wal_checkpoint(TRUNCATE)");
}

// As Connection::Run, without parsing the statement each time.
Status SqliteStore::Impl::RunPrepared(const char* statement) {
  LF_TRY(Query query, connection->Start(statement));
  return query.Run();
}

Status SqliteStore::Impl::ApplyAll(WriteGroup group) {
  LF_TRY_VOID(RunPrepared("BEGIN IMMEDIATE"));
  LF_TRY_VOID(CheckEpoch());
  LF_FAILPOINT("store.begun");
  bests_left = kBestsPerCommit;
  for (const Write& write : group | std::views::join) {
    LF_TRY_VOID(std::visit([this](const auto& what) { return On(what); }, write));
  }
  LF_TRY_VOID(in_work.Save());
  LF_TRY_VOID(Flush());
  LF_TRY_VOID(keys->WriteRuns(*connection));
  LF_FAILPOINT("store.before_commit");
  Status committed = RunPrepared("COMMIT");
  LF_FAILPOINT("store.after_commit");
  return committed;
}

Status SqliteStore::Impl::CheckEpoch() {
  LF_TRY(const std::int64_t newest, connection->Number("SELECT epoch FROM writer"));
  if (static_cast<std::uint64_t>(newest) == start.epoch) return {};
  return Fail(ErrorKind::kClosed,
              fmt::format("database {}: a newer writer (epoch {}) has taken over from this one "
                          "(epoch {}), which may write nothing more",
                          connection->path(), newest, start.epoch));
}

Status SqliteStore::Impl::On(const JobsAccepted& accepted) {
  const BatchId id = accepted.batch;
  if (accepted.new_batch) {
    LF_TRY_VOID(
        in_work.Add({.batch = id, .client = accepted.client, .accepted_at = accepted.accepted_at}));
  }
  // The coordinator takes jobs for open batches only.
  LF_TRY(StoredBatch * batch, in_work.Change(id, BatchesInWork::Known::kIsOpen));
  if (batch->closed) {
    return Fail(ErrorKind::kInvalid, fmt::format("batch {} is closed to more jobs", id));
  }
  if (accepted.first_index != batch->job_count) {
    return Fail(ErrorKind::kInvalid, fmt::format("batch {}: jobs from index {} on, but it has {}",
                                                 id, accepted.first_index, batch->job_count));
  }
  LF_TRY_VOID(batches.InsertRequest(accepted));
  LF_CHECK(accepted.replayed.empty() || accepted.replayed.size() == accepted.jobs.size(),
           "{} jobs, {} replayed", accepted.jobs.size(), accepted.replayed.size());
  for (std::size_t i = 0; i < accepted.jobs.size(); ++i) {
    LF_TRY_VOID(jobs.Insert({id, batch->job_count++}, accepted.jobs[i], accepted.accepted_at,
                            accepted.replayed.empty() ? std::nullopt : accepted.replayed[i]));
  }
  batch->closed = accepted.closes_batch;
  return {};
}

// Writes the gathered rows, each after those that it refers to.
Status SqliteStore::Impl::Flush() {
  LF_TRY_VOID(batches.Flush());
  LF_TRY_VOID(jobs.Flush());
  LF_TRY_VOID(results.Flush());
  return outcomes.Flush();
}

// Flushes first: the rows to flag may be among those of this transaction.
Status SqliteStore::Impl::On(const ResultsSuspected& suspected) {
  LF_TRY_VOID(Flush());
  Suspicion suspicion{.what = suspected};
  LF_TRY(suspicion.id, suspicions.NextId());
  LF_TRY(suspicion.results, results.RangeSince(suspected.since));
  LF_TRY(suspicion.failures, KnownFailures::RangeSince(*connection, suspected.since));
  return Flag(std::move(suspicion));
}

// Takes the next step of a suspicion, and saves what is left of it.
Status SqliteStore::Impl::Flag(Suspicion suspicion) {
  constexpr std::int64_t kOfEach = kRowsPerStep / 2;
  bests.Forget();
  LF_TRY_VOID(results.Suspect(suspicion.what, suspicion.results.TakeFront(kOfEach)));
  LF_TRY_VOID(
      keys->failures().Suspect(*connection, suspicion.what, suspicion.failures.TakeFront(kOfEach)));
  if (suspicion.results.empty() && suspicion.failures.empty()) {
    return suspicions.Remove(suspicion.id);
  }
  has_more_to_flag = true;
  return suspicions.Save(suspicion);
}

Status SqliteStore::Impl::On(const ResultDoubted& doubted) {
  LF_TRY_VOID(Flush());
  bests.Forget();
  LF_TRY(const auto failed, outcomes.Doubt(doubted));
  if (!failed) return {};
  return keys->failures().Doubt(*connection, doubted.job.batch, *failed);
}

// Counts the job as finished in its batch.
Status SqliteStore::Impl::Finish(JobId job, std::uint64_t sequence, const Evaluation& evaluation,
                                 OutcomeSource source) {
  LF_TRY(StoredBatch * batch, in_work.Change(job.batch));
  if (job.index >= batch->job_count) {
    return Fail(ErrorKind::kInvalid, fmt::format("job {} was never accepted", job));
  }
  if (sequence != batch->finished + std::uint64_t{1}) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("job {}: sequence {}, but {} jobs of its batch have "
                            "finished",
                            job, sequence, batch->finished));
  }
  ++batch->finished;
  if (!evaluation.ok()) ++batch->failed;
  if (source == OutcomeSource::kStored) ++batch->from_store;
  return {};
}

Status SqliteStore::Impl::On(const JobFinished& finished) {
  const Outcome& outcome = finished.outcome;
  LF_TRY_VOID(Finish(outcome.job, outcome.sequence, outcome.evaluation, outcome.source));
  LF_TRY(const auto row, outcomes.Insert(outcome));
  const Evaluation& evaluation = outcome.evaluation;
  const bool may_be_best = finished.program && !finished.in_doubt && evaluation.is_timed() &&
                           !evaluation.same_code && evaluation.measurement().grade != Grade::kD &&
                           outcome.source == OutcomeSource::kMeasured;
  if (may_be_best) LF_TRY_VOID(results.NoteProgram(*row, evaluation, *finished.program));
  if (may_be_best && bests_left > 0) {
    LF_TRY(const bool has_written, bests.Note(*finished.program, outcome, *row));
    if (has_written) --bests_left;
  }
  return RecordKnownFailure(finished);
}

Status SqliteStore::Impl::On(const JobsAnswered& answered) {
  for (const JobsAnswered::One& job : answered.jobs) {
    LF_TRY_VOID(Finish(job.job, job.sequence, job.answer->evaluation, answered.source));
    LF_TRY_VOID(outcomes.Insert(answered, job));
  }
  return {};
}

// Records the verdicts on a failure that the next worker would meet again.
Status SqliteStore::Impl::RecordKnownFailure(const JobFinished& finished) {
  const Outcome& outcome = finished.outcome;
  const Evaluation& evaluation = outcome.evaluation;
  if (evaluation.ok() || outcome.source != OutcomeSource::kMeasured) return {};
  if (!evaluation.subject || !evaluation.conditions || finished.in_doubt) return {};
  const FailureCode code = evaluation.failure().code;
  if (!InfoOf(code).policy.answers_equal_jobs) return {};
  LF_TRY(const ConditionsId id, conditions.Intern(*evaluation.conditions));
  std::set<Witness> witnesses(finished.agreeing.begin(), finished.agreeing.end());
  witnesses.insert({.worker = outcome.worker, .host = evaluation.conditions->hardware.host});
  for (const Witness& witness : witnesses) {
    LF_TRY_VOID(
        keys->failures().Add(*connection, id, *evaluation.subject,
                             {.hash = HashOf(*evaluation.subject, *evaluation.conditions),
                              .code = code,
                              .cut_above_ns = code == FailureCode::kCut ? finished.cut_above_ns : 0,
                              .batch = outcome.job.batch,
                              .sequence = outcome.sequence,
                              .failed_at = outcome.finished_at,
                              .witness = witness}));
  }
  return {};
}

Status SqliteStore::Impl::On(const BatchClosed& closed) {
  LF_TRY_VOID(in_work.Close(closed.batch));
  return {};
}

Status SqliteStore::Impl::On(const BatchCancelled& cancelled) {
  LF_TRY(StoredBatch * batch, in_work.Close(cancelled.batch));
  batch->cancelled = true;
  return {};
}

}  // namespace loopfleet::storage
