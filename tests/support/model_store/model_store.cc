#include "tests/support/model_store/model_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>
#include <set>
#include <variant>

#include "storage/batch_list.h"
#include "storage/pruning.h"
#include "storage/settled_failure.h"
#include "storage/thinning.h"
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

// Whether a worker's figures may answer for other kernels with the same machine code.
bool HasCode(const Evaluation& evaluation) {
  return evaluation.is_timed() && !evaluation.code_hash.empty() &&
         evaluation.measurement().grade <= Grade::kB;
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

}  // namespace

struct ModelStore::Writer {
  ModelDatabase& database;
  std::vector<std::function<void()>>& undo;

  // Each change of a map goes through these two, so that it can be taken back.
  template <class Map, class Key, class Value>
  void Set(Map& map, const Key& key, Value value) const {
    const auto known = map.find(key);
    if (known == map.end()) {
      undo.push_back([&map, key] { map.erase(key); });
    } else {
      undo.push_back([&map, key, before = known->second] { map.insert_or_assign(key, before); });
    }
    map.insert_or_assign(key, std::move(value));
  }
  template <class Map, class Key>
  void Erase(Map& map, const Key& key) const {
    const auto known = map.find(key);
    if (known == map.end()) return;
    undo.push_back([&map, key, before = known->second] { map.insert_or_assign(key, before); });
    map.erase(known);
  }

  Result<StoredBatch> Find(BatchId id) const {
    const auto batch = database.batches.find(id);
    if (batch != database.batches.end()) return batch->second;
    return Fail(ErrorKind::kInvalid, fmt::format("there is no batch {}", id));
  }

  Status operator()(const JobsAccepted& accepted) const {
    const BatchId id = accepted.batch;
    StoredBatch batch{.batch = id, .client = accepted.client, .accepted_at = accepted.accepted_at};
    if (!accepted.new_batch) {
      LF_TRY(batch, Find(id));
    } else if (database.batches.contains(id)) {
      return Fail(ErrorKind::kExists, fmt::format("batch {} is there already", id));
    }
    if (batch.closed) {
      return Fail(ErrorKind::kInvalid, fmt::format("batch {} is closed to more jobs", id));
    }
    if (accepted.first_index != batch.job_count) {
      return Fail(ErrorKind::kInvalid, fmt::format("batch {}: jobs from index {} on, but it has {}",
                                                   id, accepted.first_index, batch.job_count));
    }
    const std::pair request(accepted.client, accepted.request_id);
    if (database.requests.contains(request)) {
      return Fail(ErrorKind::kExists, "one of the requests was accepted before");
    }
    Set(database.requests, request,
        StoredRequest{.batch = id,
                      .first_index = accepted.first_index,
                      .job_count = static_cast<std::uint32_t>(accepted.jobs.size()),
                      .request_digest = accepted.request_digest});
    for (std::size_t i = 0; i < accepted.jobs.size(); ++i) {
      const JobId job{.batch = id, .index = batch.job_count++};
      Set(database.jobs, job, accepted.jobs[i]);
      Set(database.accepted_at, job, accepted.accepted_at);
      Set(database.replayed, job,
          accepted.replayed.empty() ? std::optional<ReplayResult>() : accepted.replayed[i]);
    }
    batch.closed = accepted.closes_batch;
    Set(database.batches, id, batch);
    return {};
  }

  Status operator()(const JobFinished& finished) const {
    Outcome outcome = finished.outcome;
    const Evaluation& evaluation = outcome.evaluation;
    LF_TRY(StoredBatch batch, Find(outcome.job.batch));
    if (outcome.job.index >= batch.job_count) {
      return Fail(ErrorKind::kInvalid, fmt::format("job {} was never accepted", outcome.job));
    }
    if (outcome.sequence != batch.finished + std::uint64_t{1}) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("job {}: sequence {}, but {} jobs of its batch have finished",
                              outcome.job, outcome.sequence, batch.finished));
    }
    if (database.outcomes.contains(outcome.job)) {
      return Fail(ErrorKind::kExists, fmt::format("outcomes.idx: job {} has one", outcome.job));
    }
    if (evaluation.ok()) {
      LF_TRY(const std::int64_t row, RowOf(outcome));
      Set(database.row_of, outcome.job, row);
      NoteProgram(finished, row);
    }
    const JobSpec& spec = database.jobs.at(outcome.job);
    outcome.benchmark = spec.source;
    outcome.actions = spec.actions;
    outcome.tag = spec.tag;
    ++batch.finished;
    if (!evaluation.ok()) ++batch.failed;
    if (outcome.source == OutcomeSource::kStored) ++batch.from_store;
    Set(database.batches, outcome.job.batch, batch);
    Set(database.sequences, std::pair(outcome.job.batch, outcome.sequence), outcome.job);
    Set(database.outcomes, outcome.job, outcome);
    RememberFailure(finished);
    return {};
  }

  // The row that holds its figures: a new one, or that of the answer that it repeats.
  Result<std::int64_t> RowOf(const Outcome& outcome) const {
    StoredResult stored{.evaluation = outcome.evaluation,
                        .worker = outcome.worker,
                        .measured_at = outcome.finished_at};
    Evaluation& evaluation = stored.evaluation;
    if (!evaluation.subject || !evaluation.conditions) {
      return Fail(ErrorKind::kInvalid, fmt::format("job {}: a measurement without its tree key or "
                                                   "conditions cannot be stored",
                                                   outcome.job));
    }
    if (evaluation.is_timed()) {
      const double elapsed = evaluation.measurement().elapsed_ns;
      if (!std::isfinite(elapsed) || elapsed <= 0) {
        return Fail(ErrorKind::kInvalid,
                    fmt::format("job {}: elapsed_ns is {}", outcome.job, elapsed));
      }
    }
    evaluation.stages = {};
    const bool is_copy = evaluation.same_code && HasCode(evaluation);
    evaluation.same_code = false;  // it belongs to the outcome
    const auto is_same = [&](const auto& row) {
      return row.second.answer->evaluation == evaluation;
    };
    if (outcome.source != OutcomeSource::kMeasured) {
      const auto same = std::ranges::find_if(database.results, is_same);
      if (same != database.results.end()) return same->first;
    }
    const std::int64_t id = evaluation.is_timed() ? std::max<std::int64_t>(Newest(), 0) + 1
                                                  : std::min<std::int64_t>(Oldest(), 0) - 1;
    stored.row = id;
    ModelDatabase::Row row{.answer = std::make_shared<const StoredResult>(std::move(stored))};
    if (is_copy) row.original = OriginalOf(row.answer->evaluation).value_or(id);
    Set(database.results, id, std::move(row));
    return id;
  }
  void NoteProgram(const JobFinished& finished, std::int64_t id) const {
    const Outcome& outcome = finished.outcome;
    ModelDatabase::Row row = database.results.at(id);
    const bool may_be_best = finished.program && !finished.in_doubt &&
                             outcome.evaluation.is_timed() && row.original == 0 &&
                             !outcome.evaluation.same_code &&
                             outcome.evaluation.measurement().grade != Grade::kD &&
                             outcome.source == OutcomeSource::kMeasured;
    if (!may_be_best) return;
    row.program = finished.program;
    row.job = outcome.job;
    row.spec = database.jobs.at(outcome.job);
    Set(database.results, id, std::move(row));
  }
  std::int64_t Newest() const {
    return database.results.empty() ? 0 : database.results.rbegin()->first;
  }
  std::int64_t Oldest() const {
    return database.results.empty() ? 0 : database.results.begin()->first;
  }

  std::optional<std::int64_t> OriginalOf(const Evaluation& copy) const {
    for (auto row = database.results.rbegin(); row != database.results.rend(); ++row) {
      const Evaluation& had = row->second.answer->evaluation;
      if (row->second.original == 0 && HasCode(had) && had.code_hash == copy.code_hash &&
          had.conditions == copy.conditions &&
          had.measurement().elapsed_mean_ns == copy.measurement().elapsed_mean_ns) {
        return row->first;
      }
    }
    return std::nullopt;
  }

  void RememberFailure(const JobFinished& finished) const {
    const Evaluation& evaluation = finished.outcome.evaluation;
    if (evaluation.ok() || finished.outcome.source != OutcomeSource::kMeasured) return;
    if (!evaluation.subject || !evaluation.conditions || finished.in_doubt) return;
    if (!InfoOf(evaluation.failure().code).policy.answers_equal_jobs) return;
    std::set<Witness> witnesses(finished.agreeing.begin(), finished.agreeing.end());
    witnesses.insert(
        {.worker = finished.outcome.worker, .host = evaluation.conditions->hardware.host});
    undo.push_back([&failures = database.failures, size = database.failures.size()] {
      failures.resize(size);
    });
    for (const Witness& witness : witnesses) {
      database.failures.push_back({.job = finished.outcome.job,
                                   .cut_above_ns = finished.cut_above_ns,
                                   .witness = witness,
                                   .is_suspect = false});
    }
  }

  Status operator()(const JobsAnswered& answered) const {
    for (const JobsAnswered::One& job : answered.jobs) {
      const std::int64_t newest = Newest();
      Outcome outcome = OutcomeOf(answered, job);
      if (job.answer->row < 0) {  // its values may be left out
        outcome.evaluation.verdict =
            database.results.at(job.answer->row).answer->evaluation.verdict;
      }
      LF_TRY_VOID((*this)(JobFinished{.outcome = std::move(outcome)}));
      if (!job.answer->elsewhere || Newest() == newest) continue;
      ModelDatabase::Row row = database.results.at(Newest());
      row.measured_elsewhere_at = job.answer->measured_at;
      Set(database.results, Newest(), std::move(row));
    }
    return {};
  }

  struct Why {
    WallTime flagged_at{};
    std::string reason;
  };
  void Flag(std::int64_t id, const Why& why) const {
    ModelDatabase::Row row = database.results.at(id);
    if (!std::exchange(row.is_suspect, true)) {
      const StoredResult& result = *row.answer;
      const bool is_foreign = row.measured_elsewhere_at != WallTime{};
      undo.push_back([&doubts = database.doubts] { doubts.pop_back(); });
      database.doubts.push_back(
          {.number = static_cast<std::int64_t>(database.doubts.size()) + 1,
           .subject = *result.evaluation.subject,
           .worker = result.worker,
           .measured_at = is_foreign ? row.measured_elsewhere_at : result.measured_at,
           .flagged_at = why.flagged_at,
           .reason = why.reason});
    }
    Set(database.results, id, std::move(row));
  }
  template <class IsMeant>
  void FlagFailures(const IsMeant& is_meant) const {
    undo.push_back(
        [&failures = database.failures, before = database.failures] { failures = before; });
    for (auto& failure : database.failures) failure.is_suspect |= is_meant(failure);
  }

  Status operator()(const ResultsSuspected& suspected) const {
    std::vector<std::int64_t> meant;
    for (const auto& [id, row] : database.results) {
      const bool is_copy = row.original != 0 && row.original != id;
      if (row.answer->evaluation.is_timed() && !is_copy && row.answer->worker == suspected.worker &&
          row.answer->measured_at >= suspected.since) {
        meant.push_back(id);
      }
    }
    for (const std::int64_t id : meant) Flag(id, {suspected.flagged_at, suspected.reason});
    FlagFailures([&](const ModelDatabase::KnownFailure& failure) {
      return failure.witness.worker == suspected.worker &&
             database.outcomes.at(failure.job).finished_at >= suspected.since;
    });
    return {};
  }

  // An original takes its copies with it, and a copy its original.
  Status operator()(const ResultDoubted& doubted) const {
    const auto outcome = database.outcomes.find(doubted.job);
    if (outcome == database.outcomes.end()) return {};
    if (!outcome->second.evaluation.ok()) {
      FlagFailures([&](const auto& failure) { return failure.job == doubted.job; });
      return {};
    }
    const std::int64_t row = database.row_of.at(doubted.job);
    if (row < 0) return {};
    const Why why{doubted.flagged_at, doubted.reason};
    Flag(row, why);
    if (const std::int64_t original = database.results.at(row).original; original != 0) {
      Flag(original, why);
    }
    return {};
  }

  Status operator()(const WorkersDrained& drained) const {
    Set(database.drains, drained.target, drained);
    return {};
  }
  Status operator()(const WorkersResumed& resumed) const {
    Erase(database.drains, resumed.target);
    return {};
  }
  Status operator()(const BatchClosed& closed) const {
    LF_TRY(StoredBatch batch, Find(closed.batch));
    batch.closed = true;
    Set(database.batches, closed.batch, batch);
    return {};
  }
  Status operator()(const BatchCancelled& cancelled) const {
    LF_TRY(StoredBatch batch, Find(cancelled.batch));
    batch.cancelled = batch.closed = true;
    Set(database.batches, cancelled.batch, batch);
    return {};
  }
};

// ---- ModelStore

Result<std::unique_ptr<ModelStore>> ModelStore::Open(ModelDatabase& database) {
  if (database.is_full) return Fail(ErrorKind::kFull, "no room");  // the epoch has to be written
  return std::unique_ptr<ModelStore>(new ModelStore(database));
}

ModelStore::ModelStore(ModelDatabase& database) : database_(database), epoch_(++database.epoch) {}

Result<Recovery> ModelStore::RecoverBatches() {
  Recovery recovery{.epoch = epoch_, .incarnation = database_.incarnation};
  for (const auto& [target, drained] : database_.drains) recovery.drains.push_back(drained);
  for (const auto& [id, batch] : database_.batches) {
    recovery.next_batch = id.value + 1;
    if (batch.is_over()) continue;
    recovery.unfinished.push_back(batch);
  }
  return recovery;
}

Result<std::unique_ptr<StoreReader>> ModelStore::OpenReader() {
  return std::make_unique<ModelReader>(database_);
}

Status ModelStore::Apply(WriteGroup group) {
  if (epoch_ != database_.epoch) {
    return Fail(ErrorKind::kClosed, "a newer writer has taken over from this one");
  }
  if (database_.is_full) return Fail(ErrorKind::kFull, "no room");
  undo_.clear();
  for (const Write& write : group | std::views::join) {
    Status applied = std::visit(Writer{database_, undo_}, write);
    if (applied) continue;
    for (auto change = undo_.rbegin(); change != undo_.rend(); ++change) (*change)();
    return applied;
  }
  return {};
}

namespace {

ThinningCount ThinAll(const ThinningRule& rule, ModelDatabase& database) {
  ThinningCount count;
  for (auto& [id, row] : database.results) {
    StoredResult result = *row.answer;
    if (!result.evaluation.is_timed() || result.measured_at >= rule.measured_before) continue;
    auto& measurement = std::get<Measurement>(result.evaluation.verdict);
    const std::size_t taken = RemoveSamples(rule, measurement);
    if (taken == 0) continue;
    ++count.results;
    count.samples += taken;
    count.bytes += taken * (sizeof(double) + sizeof(std::uint8_t));
    for (const auto& [job, its_row] : database.row_of) {
      if (its_row == id) database.outcomes.at(job).evaluation.verdict = measurement;
    }
    row.answer = std::make_shared<const StoredResult>(std::move(result));
  }
  return count;
}

bool IsOld(const ModelDatabase& database, const StoredBatch& batch, WallTime before) {
  const bool is_finished = batch.is_over();
  if (!is_finished || batch.accepted_at >= before) return false;
  if (batch.job_count == 0) return true;
  const JobId last = database.sequences.at({batch.batch, batch.finished});
  return database.outcomes.at(last).finished_at < before;
}

PruningCount PruneAll(const PruningRule& rule, ModelDatabase& database) {
  PruningCount count;
  std::set<BatchId> old;
  for (const auto& [id, batch] : database.batches) {
    const bool is_newest = id == database.batches.rbegin()->first;
    if (!is_newest && IsOld(database, batch, rule.finished_before)) old.insert(id);
  }
  const auto erase = [&](auto& map, auto batch_of) {
    return std::erase_if(map, [&](const auto& entry) { return old.contains(batch_of(entry)); });
  };
  const auto of_job = [](const auto& entry) { return entry.first.batch; };
  count.batches = erase(database.batches, [](const auto& entry) { return entry.first; });
  count.requests = erase(database.requests, [](const auto& entry) { return entry.second.batch; });
  count.known_failures =
      erase(database.failures, [](const auto& known) { return known.job.batch; });
  count.outcomes = erase(database.outcomes, of_job);
  count.jobs = erase(database.jobs, of_job);
  erase(database.accepted_at, of_job);
  erase(database.replayed, of_job);
  erase(database.row_of, of_job);
  erase(database.sequences, [](const auto& entry) { return entry.first.first; });
  database.pruned.merge(old);
  return count;
}

}  // namespace

Status ModelStore::Thin(Thinning& pass, WallTime) {
  if (pass.is_over()) return {};
  pass.progress() = {.count = ThinAll(pass.rule(), database_), .is_over = true};
  return {};
}

Status ModelStore::Prune(Pruning& pass, WallTime) {
  if (pass.is_over()) return {};
  pass.progress() = {.count = PruneAll(pass.rule(), database_), .phase = Pruning::Phase::kOver};
  return {};
}

Result<ThinningCount> ModelReader::CountThinning(const ThinningRule& rule) {
  ModelDatabase copy = database_;
  return ThinAll(rule, copy);
}

Result<PruningCount> ModelReader::CountPruning(const PruningRule& rule) {
  ModelDatabase copy = database_;
  return PruneAll(rule, copy);
}

Result<std::uint64_t> ModelStore::ForgetFailures(const FailureFilter& filter) {
  return std::erase_if(database_.failures, [&](const ModelDatabase::KnownFailure& failure) {
    const Outcome& outcome = database_.outcomes.at(failure.job);
    return (filter.of.empty() || filter.of == failure.witness.worker ||
            filter.of == failure.witness.host) &&
           (!filter.code || *filter.code == outcome.evaluation.failure().code) &&
           outcome.finished_at < filter.failed_before;
  });
}

// ---- ModelReader

namespace {

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

Result<StoredAnswer> ModelReader::FindSameCode(const std::string& code_hash, const ResultKey& key) {
  return NewestOf(16, key, [&](const ModelDatabase::Row& row) {
    const Evaluation& evaluation = row.answer->evaluation;
    return row.original == 0 && HasCode(evaluation) && evaluation.code_hash == code_hash &&
           FitsConditions(evaluation, key);
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

}  // namespace loopfleet::storage
