#include "storage/sqlite/sqlite_reader.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "storage/settled_failure.h"
#include "storage/sqlite/damage.h"
#include "storage/sqlite/maintenance/pruning_table.h"
#include "storage/sqlite/maintenance/retention_table.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/newest_outcomes.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/batch_table.h"
#include "storage/sqlite/tables/best_table.h"
#include "storage/sqlite/tables/conditions_table.h"
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/outcome_table.h"
#include "storage/sqlite/tables/result_table.h"
#include "storage/sqlite/tables/suspicion_table.h"
#include "storage/sqlite/unfinished_rows.h"

namespace loopfleet::storage {
namespace {

// A reader waits only while the last writer's log is being recovered.
constexpr std::chrono::milliseconds kReadBusyWait{5000};

}  // namespace

struct SqliteReader::Impl {
  Impl(std::unique_ptr<Connection> opened, std::shared_ptr<const ResultKeys> shared)
      : connection(std::move(opened)),
        own_keys(shared == nullptr ? std::make_shared<ResultKeys>() : nullptr),
        keys(shared == nullptr ? own_keys : std::move(shared)) {}

  // Sees what was committed since the last call.
  Status RefreshOwnKeys();
  // `find` with keys that are up to date. The writer keeps its own so. Other ones see one state of
  // the database, whose runs the writer may merge and remove meanwhile.
  template <class Find>
  Result<StoredAnswer> FindByKeys(const Find& find) {
    if (own_keys == nullptr) return find();
    LF_TRY_VOID(connection->Run("BEGIN"));
    const Status refreshed = RefreshOwnKeys();
    Result<StoredAnswer> found = refreshed ? find() : std::unexpected(refreshed.error());
    LF_TRY_VOID(connection->Run("COMMIT"));
    return found;
  }
  // The failure that a verdict is about; null: it is not that of `key`, or not to be trusted.
  Result<StoredAnswer> AnswerOf(const KnownFailures::Entry& entry, const ResultKey& key);

  std::unique_ptr<Connection> connection;
  std::shared_ptr<ResultKeys> own_keys;  // null: the writer's are used
  std::int64_t data_version = 0;         // at the last refresh; for own_keys only
  std::shared_ptr<const ResultKeys> keys;
  ConditionsTable conditions{*connection};
  ResultTable results{*connection, conditions, *keys};
  JobTable jobs{*connection};
  OutcomeTable outcomes{*connection, conditions, results, jobs};
  ObservationTable observations{*connection, conditions};
  BestTable bests{*connection, jobs, results};
  BatchTable batches{*connection};
  SuspicionTable suspicions{*connection};
};

Result<std::unique_ptr<SqliteReader>> SqliteReader::Open(const std::filesystem::path& path,
                                                         std::shared_ptr<const ResultKeys> keys) {
  LF_TRY(auto connection, Connection::Open(path, Access::kReadOnly, kReadBusyWait));
  LF_TRY_VOID(CheckSchema(*connection));
  return std::unique_ptr<SqliteReader>(
      new SqliteReader(std::make_unique<Impl>(std::move(connection), std::move(keys))));
}

SqliteReader::SqliteReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteReader::~SqliteReader() = default;

Status SqliteReader::Impl::RefreshOwnKeys() {
  // A commit may have flagged results as suspect.
  LF_TRY(const std::int64_t version, connection->Number("PRAGMA data_version"));
  if (std::exchange(data_version, version) != version) own_keys->Invalidate();
  return own_keys->Refresh(*connection, conditions);
}

Result<StoredAnswer> SqliteReader::FindResult(const ResultKey& key) {
  return impl_->FindByKeys([&] { return impl_->results.FindLatest(key); });
}

Result<StoredAnswer> SqliteReader::FindObservation(const ResultKey& key, ObservedValues values) {
  return impl_->observations.FindLatest(key, values);
}

Result<StoredAnswer> SqliteReader::FindSameCode(const std::string& code_hash,
                                                const ProgramKey& program, const ResultKey& key) {
  return impl_->FindByKeys([&] { return impl_->results.FindSameCode(code_hash, program, key); });
}

Result<StoredAnswer> SqliteReader::Impl::AnswerOf(const KnownFailures::Entry& entry,
                                                  const ResultKey& key) {
  LF_TRY(auto outcome, outcomes.FindAt(entry.batch, entry.sequence));
  // Hashes may collide: the row decides.
  if (!outcome || outcome->evaluation.ok() || !Matches(outcome->evaluation, key)) return nullptr;
  LF_TRY(const bool is_suspect, suspicions.Covers(entry.witness.worker, entry.failed_at));
  if (is_suspect) return nullptr;
  outcome->evaluation.stages = {};
  return std::make_shared<const StoredResult>(
      StoredResult{.evaluation = std::move(outcome->evaluation),
                   .worker = std::move(outcome->worker),
                   .measured_at = outcome->finished_at});
}

Result<StoredAnswer> SqliteReader::FindFailure(const FailureQuery& question) {
  constexpr std::size_t kMostWitnesses = 32;
  if (impl_->own_keys != nullptr) {
    LF_TRY_VOID(impl_->own_keys->failures().Load(*impl_->connection, impl_->conditions));
  }
  auto entries = impl_->keys->failures().Find(HashOf(question.key));
  std::erase_if(entries, [&](const KnownFailures::Entry& entry) {
    const bool bounds = entry.code != FailureCode::kCut ||
                        (question.cut_above_ns > 0 && question.cut_above_ns <= entry.cut_above_ns);
    return !bounds || entry.failed_at < question.key.measured_since;
  });
  struct Agreeing {
    std::map<Witness, WallTime> newest;  // verdict of each witness
    StoredAnswer answer;
  };
  std::map<FailureCode, Agreeing> by_code;
  for (const KnownFailures::Entry& entry : entries) {  // newest first
    Agreeing& said = by_code[entry.code];
    if (said.newest.contains(entry.witness) || said.newest.size() >= kMostWitnesses) continue;
    LF_TRY(StoredAnswer answer, impl_->AnswerOf(entry, question.key));
    if (answer == nullptr) continue;
    said.newest.emplace(entry.witness, entry.failed_at);
    if (said.answer == nullptr) said.answer = std::move(answer);
  }
  for (const auto& [code, said] : by_code) {
    std::vector<Verdict> verdicts;
    for (const auto& [witness, time] : said.newest) {
      verdicts.push_back({.witness = witness, .given_at = time});
    }
    if (verdicts.empty()) continue;
    if (Settles(code, verdicts, question.candidates, question.now)) return said.answer;
  }
  return nullptr;
}

Result<std::vector<BestSchedule>> SqliteReader::FindBest(const BestQuery& query) {
  return impl_->bests.Find(query);
}

Result<std::optional<StoredRequest>> SqliteReader::FindRequest(const Uuid& client,
                                                               const Uuid& request_id) {
  return impl_->batches.FindRequest(client, request_id);
}

Result<std::vector<Outcome>> SqliteReader::ReadOutcomes(BatchId batch, std::uint64_t after_sequence,
                                                        const ReadBounds& bounds) {
  return impl_->outcomes.ReadAfter(batch, after_sequence, bounds);
}

Result<SqliteReader::OutcomeRows> SqliteReader::ListOutcomes(OutcomePlace after,
                                                             const ReadBounds& bounds,
                                                             const std::string& benchmark_prefix) {
  LF_TRY(auto list, impl_->outcomes.ListAfter(after, bounds));
  OutcomeRows rows{.next = after, .is_end = list.is_end};
  for (Outcome& outcome : list.outcomes) {
    rows.next = {.batch = outcome.job.batch, .sequence = outcome.sequence};
    const auto* uri = std::get_if<looptree::BenchmarkUri>(&outcome.benchmark);
    const bool is_wanted =
        benchmark_prefix.empty() || (uri != nullptr && uri->text.starts_with(benchmark_prefix));
    if (is_wanted) rows.outcomes.push_back(std::move(outcome));
  }
  return rows;
}

Result<std::optional<FigureName>> SqliteReader::RepeatedFigure(OutcomePlace outcome) {
  return impl_->results.RepeatedBy(outcome);
}

Result<std::vector<Doubt>> SqliteReader::ListDoubts(std::int64_t after, std::uint32_t max) {
  return impl_->results.DoubtsAfter(after, max);
}

std::uint64_t SqliteReader::TakeDamagedCount() { return impl_->outcomes.TakeDamagedCount(); }

Result<std::optional<StoredJob>> SqliteReader::ReadJob(JobId job) {
  LF_TRY(auto spec, impl_->jobs.Find(job));
  if (!spec) return std::nullopt;
  StoredJob stored{.spec = *std::move(spec)};
  LF_TRY(stored.outcome, impl_->outcomes.Find(job));
  if (stored.outcome) return stored;
  // A pruning may have removed the outcome, and the job not yet.
  LF_TRY(const bool was_pruned, impl_->batches.WasPruned(job.batch));
  if (was_pruned) return std::nullopt;
  return stored;
}

std::unique_ptr<UnfinishedJobs> SqliteReader::ReadUnfinished(std::vector<StoredBatch> batches) {
  return std::make_unique<UnfinishedRows>(impl_->jobs, impl_->outcomes, std::move(batches));
}

Result<std::vector<StoredBatch>> SqliteReader::ListBatches(std::uint32_t max) {
  return impl_->batches.List(max);
}

Result<std::vector<StoredBatch>> SqliteReader::ListBatchesAfter(BatchId batch, std::uint32_t max) {
  return impl_->batches.ListAfter(batch, max);
}

Result<Uuid> SqliteReader::Incarnation() {
  LF_TRY(Query row, impl_->connection->Start("SELECT incarnation FROM writer"));
  LF_TRY(const bool found, row.Next());
  Uuid incarnation;
  const auto bytes = found ? row.Blob() : std::span<const std::uint8_t>();
  if (bytes.size() != incarnation.bytes.size()) return Damaged("writer", 1);
  std::ranges::copy(bytes, incarnation.bytes.begin());
  return incarnation;
}

Result<BatchId> SqliteReader::FirstOwnBatch() {
  LF_TRY(const std::int64_t first, impl_->connection->Number("SELECT first_batch FROM writer"));
  return BatchId{static_cast<std::uint64_t>(first)};
}

Result<std::vector<StoreReader::Restore>> SqliteReader::Restores() {
  LF_TRY(Query row, impl_->connection->Start(R"sql(
    SELECT r.first_batch, r.last_batch, r.lost,
           coalesce(CAST(u.key AS INTEGER), 0), coalesce(u.value, 0)
    FROM restores r LEFT JOIN json_each(r.unfinished) u ORDER BY r.first_batch)sql"));
  std::vector<Restore> restores;
  while (true) {
    LF_TRY(const bool more, row.Next());
    if (!more) return restores;
    const BatchId first{row.Int<std::uint64_t>()};
    if (restores.empty() || restores.back().first_batch != first) restores.emplace_back();
    Restore& restore = restores.back();
    restore.first_batch = first;
    restore.last_batch.value = row.Int<std::uint64_t>();
    const auto lost = row.Blob();
    if (lost.size() != restore.lost.bytes.size()) return Damaged("restores", first);
    std::ranges::copy(lost, restore.lost.bytes.begin());
    const BatchId batch{row.Int<std::uint64_t>()};
    const auto outcomes = row.Int<std::uint64_t>();
    if (batch.value != 0) restore.unfinished[batch] = outcomes;
  }
}

Result<std::optional<StoredBatch>> SqliteReader::FindBatch(BatchId batch) {
  return impl_->batches.Find(batch);
}

Result<BriefOutcomes> SqliteReader::NewestOutcomes(std::uint32_t max) {
  return ReadNewestOutcomes(*impl_->connection, max);
}

Result<ThinningCount> SqliteReader::CountThinning(const ThinningRule& rule) {
  return storage::CountThinning(*impl_->connection, rule);
}

Result<PruningCount> SqliteReader::CountPruning(const PruningRule& rule) {
  return storage::CountPruning(*impl_->connection, rule);
}

Result<bool> SqliteReader::WasPruned(BatchId batch) { return impl_->batches.WasPruned(batch); }

Result<std::optional<StoredBatch>> SqliteReader::NewestBatch() {
  return impl_->batches.NewestOfClients();
}

}  // namespace loopfleet::storage
