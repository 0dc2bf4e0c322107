#include "storage/sqlite/tables/outcome_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "storage/sqlite/damage.h"
#include "storage/sqlite/row_bytes.h"
#include "storage/sqlite/tables/job_text.h"

namespace loopfleet::storage {
namespace {

// Columns of `outcomes` that only a failure fills.
constexpr int kFailureColumns = 10;

// The constant columns of the RowFeeds' statements, encoded for the checksum.
const std::string& NoFailure() {
  static const std::string values = [] {
    std::string nulls;
    for (int column = 0; column < kFailureColumns; ++column) AppendValue(nulls, SQLITE_NULL, {});
    return nulls;
  }();
  return values;
}
const std::string& NothingBeyondQueue() {
  static const std::string values = [] {
    std::string zeros;
    for (const Stage stage : kStages) {
      if (stage != Stage::kQueue) AppendInt64(zeros, 0);
    }
    return zeros + NoFailure();
  }();
  static_assert(kStages.front() == Stage::kQueue);
  return values;
}

// SQLite's integers are signed: no row lies beyond the largest.
std::uint64_t Bounded(std::uint64_t place) {
  return std::min<std::uint64_t>(place, std::numeric_limits<std::int64_t>::max());
}

std::string NameOf(const Outcome& outcome) {
  return fmt::format("{} (sequence {})", outcome.job, outcome.sequence);
}

}  // namespace

Result<std::optional<ResultId>> OutcomeTable::ResultOf(const Outcome& outcome,
                                                       const StoredResult* answer) {
  if (!outcome.evaluation.ok()) return std::nullopt;
  if (!outcome.evaluation.is_timed()) return ObservationOf(outcome);
  if (outcome.source != OutcomeSource::kMeasured) {
    LF_TRY(const auto same, results_.FindSame(outcome.evaluation));
    if (same) return same;
  }
  LF_TRY(const ResultId id, results_.Insert(outcome));
  if (answer != nullptr && answer->elsewhere) {
    LF_TRY_VOID(foreign_.Insert(id, *answer->elsewhere, answer->measured_at));
  }
  return id;
}

Result<std::optional<ResultId>> OutcomeTable::ObservationOf(const Outcome& outcome) {
  if (outcome.source != OutcomeSource::kMeasured) {
    LF_TRY(const auto same, observations_.FindSame(outcome.evaluation));
    if (same) return same;
  }
  LF_TRY_VOID(jobs_.Flush());  // the job may be of the same transaction
  const auto job = jobs_.Find(outcome.job);
  // What was asked is there for people: its damage must not keep the answer out.
  if (!job && job.error().kind != ErrorKind::kCorrupt) return std::unexpected(job.error());
  const JobSpec unknown;
  LF_TRY(const ResultId id, observations_.Insert(outcome, job && *job ? **job : unknown));
  return id;
}

Result<std::optional<ResultId>> OutcomeTable::Insert(const Outcome& outcome,
                                                     const StoredResult* answer) {
  LF_TRY(const auto result, ResultOf(outcome, answer));
  LF_TRY_VOID(AddRow(outcome, result));
  return result;
}

Status OutcomeTable::AddRow(const Outcome& outcome, std::optional<ResultId> result) {
  const Evaluation& evaluation = outcome.evaluation;
  std::optional<ConditionsId> conditions;
  std::optional<std::string> notes;
  if (!result && evaluation.conditions) {
    LF_TRY(conditions, conditions_.Intern(*evaluation.conditions));
  }
  if (!result) {
    LF_TRY(notes, ListText(evaluation.notes));
  }
  RowFeed& rows = result ? measured_rows_ : rows_;
  rows.Add(outcome.job.batch.value)
      .Add(outcome.sequence)
      .Add(outcome.job.index)
      .Add(SourceText(outcome))
      .Add(result)
      .Add(outcome.attempts)
      .Add(outcome.worker)
      .Add(outcome.finished_at.time_since_epoch().count());
  for (const Stage stage : kStages) rows.Add(evaluation.stages[stage].count());
  if (result) {
    rows.AddValues(NoFailure());
  } else {
    const Failure& failure = evaluation.failure();
    rows.Add(static_cast<int>(failure.code))
        .Add(failure.message)
        .Add(failure.action_index)
        .Add(failure.signal);
    evaluation.subject ? rows.Add(std::span<const std::uint8_t>(evaluation.subject->bytes))
                       : rows.AddNull();
    rows.Add(conditions)
        .Add(evaluation.flop_count)
        .Add(evaluation.scratch_bytes)
        .Add(evaluation.code_hash)
        .Add(notes);
  }
  return rows.AddChecksum().EndRow();
}

Status OutcomeTable::Insert(const JobsAnswered& answered, const JobsAnswered::One& job) {
  if (answered.source != OutcomeSource::kStored || job.answer->row == 0) {
    if (job.answer == shared_.answer) return AddRow(FrameOf(answered, job), shared_.row);
    LF_TRY(const auto result, Insert(OutcomeOf(answered, job), job.answer.get()));
    if (result && IsObservation(*result)) shared_ = {.answer = job.answer, .row = *result};
    return {};
  }
  return answered_rows_.Add(job.job.batch.value)
      .Add(job.sequence)
      .Add(job.job.index)
      .Add(EnumName(OutcomeSource::kStored))
      .Add(job.answer->row)
      .Add(0)  // attempts
      .Add(job.answer->worker)
      .Add(answered.finished_at.time_since_epoch().count())
      .Add(job.queued.count())
      .AddValues(NothingBeyondQueue())
      .AddChecksum()
      .EndRow();
}

Status OutcomeTable::Flush() {
  LF_TRY_VOID(rows_.Flush());
  LF_TRY_VOID(measured_rows_.Flush());
  return answered_rows_.Flush();
}

void OutcomeTable::Forget() {
  shared_ = {};
  rows_.Forget();
  measured_rows_.Forget();
  answered_rows_.Forget();
}

Result<std::optional<std::uint64_t>> OutcomeTable::Doubt(const ResultDoubted& doubted) {
  std::optional<ResultId> result;
  std::uint64_t sequence = 0;
  {
    LF_TRY(Query row,
           connection_.Start("SELECT sequence, result FROM outcomes WHERE batch = ? AND idx = ?"));
    row.Add(doubted.job.batch.value).Add(doubted.job.index);
    LF_TRY(const bool found, row.Next());
    if (!found) return std::nullopt;
    sequence = row.Int<std::uint64_t>();
    result = row.OptionalInt64();
  }
  if (!result) return sequence;
  if (IsObservation(*result)) {
    LF_TRY_VOID(observations_.Suspect(*result, doubted.flagged_at, doubted.reason));
    return std::nullopt;
  }
  LF_TRY_VOID(results_.SuspectFigure(*result, doubted.flagged_at, doubted.reason));
  return std::nullopt;
}

Result<std::optional<Outcome>> OutcomeTable::FindAt(BatchId batch, std::uint64_t sequence) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM outcomes WHERE batch = ? AND sequence = ?"));
  query.Add(batch.value).Add(sequence);
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  auto row = Read(query);
  const Status read = row ? Resolve(*row, ObservedValues::kLeftOut) : std::unexpected(row.error());
  if (read) return std::move(row->outcome);
  if (read.error().kind != ErrorKind::kCorrupt) return std::unexpected(read.error());
  ++damaged_;
  return std::nullopt;
}

Result<OutcomeTable::Row> OutcomeTable::Read(Query& query) {
  Row row;
  Outcome& outcome = row.outcome;
  outcome.job.batch.value = query.Int<std::uint64_t>();
  outcome.sequence = query.Int<std::uint64_t>();
  outcome.job.index = query.Int<std::uint32_t>();
  const std::string_view source_text = query.Text();
  row.same_code = source_text == kSameCodeSource;
  const auto source =
      row.same_code ? OutcomeSource::kMeasured : ValueNamed<OutcomeSource>(source_text);
  row.result = query.OptionalInt64();
  outcome.attempts = query.Int<std::uint32_t>();
  outcome.worker = query.Text();
  outcome.finished_at = WallTime(Nanos(query.Int64()));
  Evaluation& evaluation = outcome.evaluation;
  for (const Stage stage : kStages) evaluation.stages[stage] = Nanos(query.Int64());

  const auto code = FailureCodeOf(query.Int<std::uint16_t>());
  Failure failure{.message = std::string(query.Text())};
  if (const auto index = query.OptionalInt64()) {
    failure.action_index = static_cast<std::uint32_t>(*index);
  }
  failure.signal = query.Int<std::int32_t>();
  if (const auto key = query.Blob(); key.size() == sizeof(SubjectKey::bytes)) {
    std::memcpy(evaluation.subject.emplace().bytes.data(), key.data(), key.size());
  }
  row.conditions = query.OptionalInt64();
  evaluation.flop_count = query.Int<std::uint64_t>();
  evaluation.scratch_bytes = query.Int<std::uint64_t>();
  evaluation.code_hash = query.Text();
  const auto notes = query.OptionalText();
  if (!query.ChecksumMatches()) return Damaged("outcomes", NameOf(outcome));

  if (!source || (!row.result && !code)) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("outcome {} has a source or a failure code that this "
                            "version does not know",
                            NameOf(outcome)));
  }
  outcome.source = *source;
  if (code) failure.code = *code;
  if (notes) {
    LF_TRY(evaluation.notes, ParseListText(*notes));
  }
  evaluation.verdict = std::move(failure);
  return row;
}

Status OutcomeTable::Resolve(Row& row, ObservedValues observed) {
  Outcome& outcome = row.outcome;
  LF_TRY(auto job, jobs_.Find(outcome.job));
  if (!job) return Damaged("jobs", outcome.job);
  outcome.benchmark = std::move(job->source);
  outcome.actions = std::move(job->actions);
  outcome.tag = std::move(job->tag);
  Evaluation& evaluation = outcome.evaluation;
  if (row.conditions) {
    LF_TRY(evaluation.conditions, conditions_.Find(*row.conditions));
  }
  if (!row.result) return {};
  const StageDurations stages = evaluation.stages;
  if (IsObservation(*row.result)) {
    LF_TRY(const StoredAnswer result, observations_.Find(*row.result, observed));
    evaluation = result->evaluation;
  } else {
    LF_TRY(StoredResult result, results_.Find(*row.result));
    evaluation = std::move(result.evaluation);
  }
  evaluation.stages = stages;
  return {};
}

Result<Outcome> OutcomeTable::Finish(Row row, ObservedValues observed) {
  const Status resolved = Resolve(row, observed);
  if (!resolved) {
    if (resolved.error().kind != ErrorKind::kCorrupt) return std::unexpected(resolved.error());
    ++damaged_;
    row.outcome.evaluation = {.verdict = Failure{.code = FailureCode::kStorageCorrupt,
                                                 .message = resolved.error().message},
                              .stages = row.outcome.evaluation.stages};
  }
  row.outcome.evaluation.same_code = row.same_code && row.outcome.evaluation.ok();
  return std::move(row.outcome);
}

Result<std::uint32_t> OutcomeTable::IndexOf(BatchId batch, std::uint64_t sequence) {
  LF_TRY(Query query, connection_.Start(R"sql(
    SELECT idx FROM outcomes INDEXED BY sqlite_autoindex_outcomes_2
    WHERE batch = ? AND sequence = ?)sql"));
  query.Add(batch.value).Add(sequence);
  LF_TRY(const bool found, query.Next());
  if (!found) {
    return Damaged("outcomes", fmt::format("with sequence {} of batch {}", sequence, batch));
  }
  return query.Int<std::uint32_t>();
}

// SQLite found the row by its keys, so the page's structure is intact. If the checksum reports
// other damage, this job's outcome is STORAGE_CORRUPT and the others are unharmed.
Result<Outcome> OutcomeTable::ReadAndFinish(Query& query, ObservedValues observed) {
  auto row = Read(query);
  if (row) return Finish(*std::move(row), observed);
  if (row.error().kind != ErrorKind::kCorrupt) return std::unexpected(row.error());
  ++damaged_;
  query.Rewind();
  Row damaged;
  damaged.outcome.job.batch.value = query.Int<std::uint64_t>();
  damaged.outcome.sequence = query.Int<std::uint64_t>();
  // The job comes from the index: the row's own copy may be what is damaged.
  LF_TRY(damaged.outcome.job.index, IndexOf(damaged.outcome.job.batch, damaged.outcome.sequence));
  (void)Resolve(damaged, observed);  // the job's own row may be sound
  damaged.outcome.evaluation = {
      .verdict = Failure{.code = FailureCode::kStorageCorrupt, .message = row.error().message}};
  return std::move(damaged.outcome);
}

Result<OutcomeTable::Listed> OutcomeTable::ListAfter(OutcomePlace after, const ReadBounds& bounds) {
  LF_TRY(Query query, connection_.Start(R"sql(
    SELECT * FROM outcomes WHERE (batch, sequence) > (?, ?) ORDER BY batch, sequence LIMIT ?)sql"));
  query.Add(Bounded(after.batch.value)).Add(Bounded(after.sequence)).Add(bounds.max_rows);
  Listed listed;
  for (std::size_t bytes = 0; bytes < bounds.max_bytes;) {
    LF_TRY(const bool more, query.Next());
    if (!more) {
      listed.is_end = listed.outcomes.size() < bounds.max_rows;
      break;
    }
    LF_TRY(Outcome outcome, ReadAndFinish(query, bounds.observed));
    bytes += BytesOf(outcome);
    listed.outcomes.push_back(std::move(outcome));
  }
  return listed;
}

Result<std::vector<Outcome>> OutcomeTable::ReadAfter(BatchId batch, std::uint64_t sequence,
                                                     const ReadBounds& bounds) {
  LF_TRY(Query query, connection_.Start(R"sql(
    SELECT * FROM outcomes WHERE batch = ? AND sequence > ? ORDER BY sequence LIMIT ?)sql"));
  query.Add(batch.value).Add(Bounded(sequence)).Add(bounds.max_rows);
  std::vector<Outcome> outcomes;
  for (std::size_t bytes = 0; bytes < bounds.max_bytes;) {
    LF_TRY(const bool more, query.Next());
    if (!more) break;
    LF_TRY(Outcome outcome, ReadAndFinish(query, bounds.observed));
    if (outcome.sequence != ++sequence) {  // sequences have no gaps
      return Damaged("outcomes", fmt::format("with sequence {} of batch {}", sequence, batch));
    }
    bytes += BytesOf(outcome);
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

Result<std::optional<Outcome>> OutcomeTable::Find(JobId job) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM outcomes WHERE batch = ? AND idx = ?"));
  query.Add(job.batch.value).Add(job.index);
  LF_TRY(const bool found, query.Next());
  if (!found) return std::nullopt;
  LF_TRY(Outcome outcome, ReadAndFinish(query, ObservedValues::kRead));
  return outcome;
}

Result<WallTime> OutcomeTable::FinishedAt(BatchId batch, std::uint64_t sequence) {
  LF_TRY(Query query, connection_.Start("SELECT * FROM outcomes WHERE batch = ? AND sequence = ?"));
  query.Add(batch.value).Add(sequence);
  LF_TRY(const bool found, query.Next());
  if (!found) {
    return Damaged("outcomes", fmt::format("with sequence {} of batch {}", sequence, batch));
  }
  LF_TRY(const Row row, Read(query));
  return row.outcome.finished_at;
}

Result<OutcomeTable::Removed> OutcomeTable::RemoveLast(BatchId batch, std::uint32_t most) {
  Removed removed;
  {
    LF_TRY(Query query, connection_.Start(R"sql(
      SELECT count(*), min(sequence) FROM
        (SELECT sequence FROM outcomes WHERE batch = ? ORDER BY sequence DESC LIMIT ?))sql"));
    query.Add(batch.value).Add(most);
    LF_TRY_VOID(query.Next());
    removed.rows = query.Int<std::uint32_t>();
    removed.first_sequence = query.Int<std::uint64_t>();
  }
  if (removed.rows == 0) return removed;
  LF_TRY(Query query, connection_.Start("DELETE FROM outcomes WHERE batch = ? AND sequence >= ?"));
  LF_TRY_VOID(query.Add(batch.value).Add(removed.first_sequence).Run());
  return removed;
}

Result<std::vector<bool>> OutcomeTable::FinishedJobs(JobId first, std::uint32_t count) {
  LF_TRY(Query query, connection_.Start(R"sql(
    SELECT idx FROM outcomes INDEXED BY sqlite_autoindex_outcomes_2
    WHERE batch = ? AND idx >= ? AND idx < ?)sql"));
  query.Add(first.batch.value).Add(first.index).Add(std::uint64_t{first.index} + count);
  std::vector<bool> finished(count);
  while (true) {
    LF_TRY(const bool more, query.Next());
    if (!more) return finished;
    finished[query.Int<std::uint32_t>() - first.index] = true;
  }
}

}  // namespace loopfleet::storage
