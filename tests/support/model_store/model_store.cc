#include "tests/support/model_store/model_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <utility>
#include <variant>

#include "storage/settled_failure.h"
#include "tests/support/model_store/model_reader.h"

namespace loopfleet::storage {

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

Status ModelStore::Thin(Thinning& pass, WallTime) {
  if (pass.is_over()) return {};
  pass.progress() = {.count = database_.Thin(pass.rule()), .is_over = true};
  return {};
}

Status ModelStore::Prune(Pruning& pass, WallTime) {
  if (pass.is_over()) return {};
  pass.progress() = {.count = database_.Prune(pass.rule()), .phase = Pruning::Phase::kOver};
  return {};
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

}  // namespace loopfleet::storage
