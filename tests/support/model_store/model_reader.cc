#include "tests/support/model_store/model_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "storage/batch_list.h"
#include "storage/settled_failure.h"
#include "storage/unfinished_jobs.h"

namespace loopfleet::storage {
namespace {

bool FitsConditions(const Evaluation& evaluation, const ResultKey& key) {
  if (!evaluation.conditions) return false;
  const Conditions& had = *evaluation.conditions;
  return had.hardware.hardware_class == key.hardware_class && had.compiler == key.compiler &&
         had.threads == key.threads && had.cache == key.cache && had.policy == key.policy;
}

bool Fits(const Evaluation& evaluation, const ResultKey& key) {
  return evaluation.subject == key.subject && FitsConditions(evaluation, key);
}

bool IsGoodEnough(const Measurement& measurement, const ResultKey& key) {
  if (measurement.grade == Grade::kD || measurement.grade > key.min_grade) return false;
  if (key.precision == 0) return true;
  return measurement.spread <= key.precision &&
         (measurement.grade != Grade::kC || key.precision > 0.05);
}

void LeaveOutValues(Evaluation& evaluation) {
  if (auto* observed = std::get_if<Observed>(&evaluation.verdict)) observed->values.clear();
}

class ModelUnfinished final : public UnfinishedJobs {
 public:
  ModelUnfinished(const ModelDatabase& database, std::vector<StoredBatch> batches)
      : database_(database) {
    for (const StoredBatch& batch : batches) {
      for (std::uint32_t index = 0; index < batch.job_count; ++index) {
        const JobId job{.batch = batch.batch, .index = index};
        if (!database_.outcomes.contains(job)) jobs_.push_back(job);
      }
    }
  }

  Status Read(std::size_t max, std::vector<UnfinishedJob>& jobs, std::vector<JobId>&) override {
    for (; max > 0 && !at_end(); --max, ++next_) {
      if (!database_.outcomes.contains(jobs_[next_])) jobs.push_back(JobOf(jobs_[next_]));
    }
    return {};
  }
  bool at_end() const override { return next_ == jobs_.size(); }
  Result<std::optional<UnfinishedJob>> ReadOutOfOrder(JobId job) override {
    const auto ahead = jobs_.begin() + static_cast<std::ptrdiff_t>(next_);
    if (database_.outcomes.contains(job) || std::find(ahead, jobs_.end(), job) == jobs_.end()) {
      return std::nullopt;
    }
    return JobOf(job);
  }

 private:
  UnfinishedJob JobOf(JobId job) const {
    UnfinishedJob unfinished{.job = job,
                             .spec = database_.jobs.at(job),
                             .accepted_at = std::nullopt,
                             .replayed = database_.replayed.at(job)};
    if (unfinished.spec.deadline_s != 0) unfinished.accepted_at = database_.accepted_at.at(job);
    return unfinished;
  }

  const ModelDatabase& database_;
  std::vector<JobId> jobs_;
  std::size_t next_ = 0;
};

// Newest first, timed or observed.
std::vector<const ModelDatabase::Row*> RowsOf(const ModelDatabase& database, bool timed) {
  std::vector<const ModelDatabase::Row*> rows;
  for (const auto& [id, row] : database.results) {
    if ((id > 0) == timed) rows.push_back(&row);
  }
  if (timed) std::ranges::reverse(rows);  // ids of observed values descend
  return rows;
}

}  // namespace

template <class FitsKey>
StoredAnswer ModelReader::NewestOf(std::size_t most, const ResultKey& key,
                                   const FitsKey& fits) const {
  for (const ModelDatabase::Row* row : RowsOf(database_, true)) {
    if (!fits(*row)) continue;
    if (most-- == 0) return nullptr;
    const ModelDatabase::Row& measured =
        row->original == 0 ? *row : database_.results.at(row->original);
    if (measured.answer->measured_at < key.measured_since) continue;
    if (row->is_suspect || measured.is_suspect) continue;
    if (row->measured_elsewhere_at != WallTime{}) continue;
    if (IsGoodEnough(row->answer->evaluation.measurement(), key)) return row->answer;
  }
  return nullptr;
}

Result<StoredAnswer> ModelReader::FindResult(const ResultKey& key) {
  return NewestOf(64, key,
                  [&](const ModelDatabase::Row& row) { return Fits(row.answer->evaluation, key); });
}

Result<StoredAnswer> ModelReader::FindObservation(const ResultKey& key, ObservedValues values) {
  for (const ModelDatabase::Row* row : RowsOf(database_, false)) {
    if (!Fits(row->answer->evaluation, key)) continue;
    if (row->answer->measured_at < key.measured_since) return nullptr;
    if (values == ObservedValues::kRead) return row->answer;
    StoredResult brief = *row->answer;
    LeaveOutValues(brief.evaluation);
    return std::make_shared<const StoredResult>(std::move(brief));
  }
  return nullptr;
}

Result<StoredAnswer> ModelReader::FindSameCode(const std::string& code_hash,
                                               const ProgramKey& program, const ResultKey& key) {
  return NewestOf(16, key, [&](const ModelDatabase::Row& row) {
    const Evaluation& evaluation = row.answer->evaluation;
    return row.original == 0 && HasCode(evaluation) && evaluation.code_hash == code_hash &&
           row.program == program && FitsConditions(evaluation, key);
  });
}

Result<std::vector<BestSchedule>> ModelReader::FindBest(const BestQuery& query) {
  std::map<std::pair<std::string, SubjectKey>, const ModelDatabase::Row*> newest;  // of each tree
  for (const auto& [id, row] : database_.results) {
    if (!row.program || *row.program != query.program) continue;
    const Conditions& had = *row.answer->evaluation.conditions;
    const bool fits =
        (query.hardware_class.empty() || query.hardware_class == had.hardware.hardware_class) &&
        query.threads == had.threads && query.cache == had.cache;
    if (fits) newest[{had.hardware.hardware_class, *row.answer->evaluation.subject}] = &row;
  }
  std::vector<BestSchedule> found;
  for (const auto& [tree, row] : newest) {
    if (row->is_suspect) continue;
    JobSpec spec = row->spec;
    spec.tag.clear();
    spec.deadline_s = 0;
    found.push_back({.job = row->job, .spec = std::move(spec), .measured = *row->answer});
  }
  std::ranges::sort(found, {}, [](const BestSchedule& best) {
    return best.measured.evaluation.measurement().elapsed_ns;
  });
  if (found.size() > query.max) found.resize(query.max);
  return found;
}

Result<std::optional<FigureName>> ModelReader::RepeatedFigure(OutcomePlace place) {
  const auto job = database_.sequences.find({place.batch, place.sequence});
  if (job == database_.sequences.end()) return std::nullopt;
  const Outcome& outcome = database_.outcomes.at(job->second);
  if (!outcome.evaluation.is_timed() || SourceText(outcome) == "measured") return std::nullopt;
  const ModelDatabase::Row* row = &database_.results.at(database_.row_of.at(job->second));
  if (row->original != 0) row = &database_.results.at(row->original);
  const bool is_foreign = row->measured_elsewhere_at != WallTime();
  return FigureName{
      .subject = *row->answer->evaluation.subject,
      .worker = row->answer->worker,
      .measured_at = is_foreign ? row->measured_elsewhere_at : row->answer->measured_at};
}

Result<std::vector<Doubt>> ModelReader::ListDoubts(std::int64_t after, std::uint32_t max) {
  std::vector<Doubt> listed;
  for (const Doubt& doubt : database_.doubts) {
    if (doubt.number > after && listed.size() < max) listed.push_back(doubt);
  }
  return listed;
}

Result<StoredAnswer> ModelReader::FindFailure(const FailureQuery& question) {
  std::map<FailureCode, std::map<Witness, WallTime>> verdicts;  // the newest of each
  std::map<FailureCode, StoredAnswer> answers;
  for (auto failure = database_.failures.rbegin(); failure != database_.failures.rend();
       ++failure) {
    const Outcome& outcome = database_.outcomes.at(failure->job);
    const FailureCode code = outcome.evaluation.failure().code;
    const bool bounds =
        code != FailureCode::kCut ||
        (question.cut_above_ns > 0 && question.cut_above_ns <= failure->cut_above_ns);
    if (failure->is_suspect || !bounds || outcome.finished_at < question.key.measured_since ||
        !Fits(outcome.evaluation, question.key)) {
      continue;
    }
    verdicts[code].try_emplace(failure->witness, outcome.finished_at);
    if (answers.contains(code)) continue;
    StoredResult stored{.evaluation = outcome.evaluation,
                        .worker = outcome.worker,
                        .measured_at = outcome.finished_at};
    stored.evaluation.stages = {};
    answers[code] = std::make_shared<const StoredResult>(std::move(stored));
  }
  for (const auto& [code, by] : verdicts) {
    std::vector<Verdict> given;
    for (const auto& [witness, time] : by) given.push_back({.witness = witness, .given_at = time});
    if (Settles(code, given, question.candidates, question.now)) return answers.at(code);
  }
  return nullptr;
}

Result<std::optional<StoredRequest>> ModelReader::FindRequest(const Uuid& client,
                                                              const Uuid& request_id) {
  const auto found = database_.requests.find({client, request_id});
  if (found == database_.requests.end()) return std::nullopt;
  return found->second;
}

std::vector<Outcome> ModelReader::OutcomesAfter(OutcomePlace place, BatchId last,
                                                const ReadBounds& bounds) const {
  std::vector<Outcome> outcomes;
  std::size_t bytes = 0;
  for (auto next = database_.sequences.upper_bound({place.batch, place.sequence});
       next != database_.sequences.end() && next->first.first <= last &&
       outcomes.size() < bounds.max_rows && bytes < bounds.max_bytes;
       ++next) {
    Outcome& outcome = outcomes.emplace_back(database_.outcomes.at(next->second));
    if (bounds.observed == ObservedValues::kLeftOut) LeaveOutValues(outcome.evaluation);
    bytes += BytesOf(outcome);
  }
  return outcomes;
}

Result<std::vector<Outcome>> ModelReader::ReadOutcomes(BatchId batch, std::uint64_t after_sequence,
                                                       const ReadBounds& bounds) {
  return OutcomesAfter({.batch = batch, .sequence = after_sequence}, batch, bounds);
}

Result<StoreReader::OutcomeRows> ModelReader::ListOutcomes(OutcomePlace after,
                                                           const ReadBounds& bounds,
                                                           const std::string& benchmark_prefix) {
  OutcomeRows rows{.outcomes = {}, .next = after, .is_end = false};
  constexpr BatchId kNoLast{std::numeric_limits<std::uint64_t>::max()};
  for (const Outcome& outcome : OutcomesAfter(after, kNoLast, bounds)) {
    rows.next = {.batch = outcome.job.batch, .sequence = outcome.sequence};
    const auto* uri = std::get_if<looptree::BenchmarkUri>(&outcome.benchmark);
    if (benchmark_prefix.empty() || (uri != nullptr && uri->text.starts_with(benchmark_prefix))) {
      rows.outcomes.push_back(outcome);
    }
  }
  const auto left = database_.sequences.upper_bound({rows.next.batch, rows.next.sequence});
  rows.is_end = left == database_.sequences.end();
  return rows;
}

Result<std::optional<StoredJob>> ModelReader::ReadJob(JobId job) {
  const auto spec = database_.jobs.find(job);
  if (spec == database_.jobs.end()) return std::nullopt;
  StoredJob found{.spec = spec->second, .outcome = std::nullopt};
  if (const auto outcome = database_.outcomes.find(job); outcome != database_.outcomes.end()) {
    found.outcome = outcome->second;
  }
  return found;
}

std::unique_ptr<UnfinishedJobs> ModelReader::ReadUnfinished(std::vector<StoredBatch> batches) {
  return std::make_unique<ModelUnfinished>(database_, std::move(batches));
}

Result<std::vector<StoredBatch>> ModelReader::ListBatches(std::uint32_t max) {
  std::vector<StoredBatch> batches;
  std::vector<StoredBatch> older;
  for (auto batch = database_.batches.rbegin(); batch != database_.batches.rend(); ++batch) {
    const StoredBatch& one = batch->second;
    if (batches.size() < max) {
      batches.push_back(one);
    } else if (older.size() < max / 2 && !one.is_over()) {
      older.push_back(one);
    }
  }
  return WithOlder(std::move(batches), std::move(older), max);
}

Result<std::vector<StoredBatch>> ModelReader::ListBatchesAfter(BatchId batch, std::uint32_t max) {
  std::vector<StoredBatch> batches;
  for (auto next = database_.batches.upper_bound(batch);
       next != database_.batches.end() && batches.size() < max; ++next) {
    batches.push_back(next->second);
  }
  return batches;
}

Result<std::optional<StoredBatch>> ModelReader::FindBatch(BatchId id) {
  const auto batch = database_.batches.find(id);
  if (batch == database_.batches.end()) return std::nullopt;
  return batch->second;
}

Result<std::optional<StoredBatch>> ModelReader::NewestBatch() {
  for (auto batch = database_.batches.rbegin(); batch != database_.batches.rend(); ++batch) {
    if (!batch->second.client.is_nil()) return batch->second;
  }
  return std::nullopt;
}

Result<BriefOutcomes> ModelReader::NewestOutcomes(std::uint32_t max) {
  BriefOutcomes newest;
  for (auto next = database_.sequences.rbegin();
       next != database_.sequences.rend() && newest.outcomes.size() < max; ++next) {
    const Outcome& outcome = database_.outcomes.at(next->second);
    BriefOutcome brief{.job = outcome.job, .worker = outcome.worker};
    brief.finished_at = outcome.finished_at;
    newest.outcomes.push_back(std::move(brief));
  }
  newest.is_all = newest.outcomes.size() == database_.sequences.size();
  return newest;
}

Result<ThinningCount> ModelReader::CountThinning(const ThinningRule& rule) {
  ModelDatabase copy = database_;
  return copy.Thin(rule);
}

Result<PruningCount> ModelReader::CountPruning(const PruningRule& rule) {
  ModelDatabase copy = database_;
  return copy.Prune(rule);
}

}  // namespace loopfleet::storage
