#include "tests/simulation/disk/model_disk.h"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/core/handlers/explanation.h"
#include "storage/result_index/known_failures.h"
#include "tests/simulation/job_pool.h"

namespace loopfleet::simulation {
namespace {

wire::BatchInfo InfoOf(const storage::StoredBatch& batch) {
  using wire::BatchState;
  return {.batch = batch.batch,
          .client = batch.client,
          .state = batch.cancelled                    ? BatchState::kCancelled
                   : !batch.closed                    ? BatchState::kOpen
                   : batch.finished < batch.job_count ? BatchState::kRunning
                                                      : BatchState::kFinished,
          .submitted_at = batch.accepted_at,
          .job_count = batch.job_count,
          .finished = batch.finished,
          .failed = batch.failed,
          .from_store = batch.from_store};
}

wire::Refused NotFound() {
  return {.failure = {.code = FailureCode::kNotFound, .message = "it is not there"}};
}

}  // namespace

struct ModelDisk::Writer {
  State& state;

  Status operator()(const storage::JobsAccepted& accepted) const {
    storage::StoredBatch& batch = state.batches[accepted.batch];
    if (accepted.new_batch == static_cast<bool>(batch.batch)) {
      return Fail(ErrorKind::kExists, fmt::format("batch {}: is it new?", accepted.batch));
    }
    if (accepted.new_batch) {
      batch = {
          .batch = accepted.batch, .client = accepted.client, .accepted_at = accepted.accepted_at};
    }
    if (batch.closed || accepted.first_index != batch.job_count) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("batch {}: jobs from index {} on, but it has {}", batch.batch,
                              accepted.first_index, batch.job_count));
    }
    const bool fresh =
        state.requests
            .try_emplace({.client = accepted.client, .request = accepted.request_id},
                         storage::StoredRequest{
                             .batch = accepted.batch,
                             .first_index = accepted.first_index,
                             .job_count = static_cast<std::uint32_t>(accepted.jobs.size()),
                             .request_digest = accepted.request_digest})
            .second;
    if (!fresh) return Fail(ErrorKind::kExists, "a request that was accepted before");
    for (const JobSpec& spec : accepted.jobs) {
      const JobId job{.batch = accepted.batch, .index = batch.job_count++};
      state.jobs[job] = spec;
      if (spec.deadline_s != 0) state.accepted_at[job] = accepted.accepted_at;
    }
    batch.closed = accepted.closes_batch;
    return {};
  }

  Status operator()(const storage::JobFinished& finished) const {
    Outcome outcome = finished.outcome;
    const auto spec = state.jobs.find(outcome.job);
    if (spec == state.jobs.end()) {
      return Fail(ErrorKind::kInvalid, fmt::format("job {} was never accepted", outcome.job));
    }
    storage::StoredBatch& batch = state.batches[outcome.job.batch];
    if (outcome.sequence != batch.finished + std::uint64_t{1}) {
      return Fail(ErrorKind::kInvalid, fmt::format("job {}: sequence {} after {}", outcome.job,
                                                   outcome.sequence, batch.finished));
    }
    outcome.benchmark = spec->second.source;
    outcome.actions = spec->second.actions;
    outcome.tag = spec->second.tag;
    if (!state.outcomes.try_emplace(outcome.job, outcome).second) {
      return Fail(ErrorKind::kExists, fmt::format("job {} has an outcome", outcome.job));
    }
    ++batch.finished;
    if (!outcome.evaluation.ok()) ++batch.failed;
    if (outcome.source == OutcomeSource::kStored) ++batch.from_store;
    state.sequences[{outcome.job.batch, outcome.sequence}] = outcome.job;
    if (outcome.evaluation.ok() && outcome.source == OutcomeSource::kMeasured) {
      state.measured[*outcome.evaluation.subject].push_back(outcome.job);
    }
    const bool is_known =
        !outcome.evaluation.ok() && outcome.evaluation.subject && outcome.evaluation.conditions &&
        outcome.source == OutcomeSource::kMeasured &&
        InfoOf(outcome.evaluation.failure().code).policy.answers_equal_jobs && !finished.in_doubt;
    if (is_known) state.failed[*outcome.evaluation.subject].push_back(outcome.job);
    return {};
  }

  Status operator()(const storage::JobsAnswered& answered) const {
    for (const storage::JobsAnswered::One& job : answered.jobs) {
      LF_TRY_VOID((*this)(storage::JobFinished{.outcome = storage::OutcomeOf(answered, job)}));
    }
    return {};
  }

  Status operator()(const storage::ResultsSuspected& suspected) const {
    for (auto& [tree, jobs] : state.measured) {
      std::erase_if(jobs, [&](JobId job) {
        const Outcome& outcome = state.outcomes.at(job);
        return outcome.worker == suspected.worker && outcome.finished_at >= suspected.since;
      });
    }
    for (auto& [tree, jobs] : state.failed) {
      std::erase_if(jobs, [&](JobId job) {
        const Outcome& outcome = state.outcomes.at(job);
        return outcome.worker == suspected.worker && outcome.finished_at >= suspected.since;
      });
    }
    return {};
  }

  Status operator()(const storage::ResultDoubted& doubted) const {
    for (auto& [tree, jobs] : state.measured) std::erase(jobs, doubted.job);
    for (auto& [tree, jobs] : state.failed) std::erase(jobs, doubted.job);
    return {};
  }

  Status operator()(const storage::WorkersDrained& drained) const {
    state.drains.insert_or_assign(drained.target, drained);
    return {};
  }
  Status operator()(const storage::WorkersResumed& resumed) const {
    state.drains.erase(resumed.target);
    return {};
  }

  Status operator()(const storage::BatchClosed& closed) const {
    state.batches.at(closed.batch).closed = true;
    return {};
  }

  Status operator()(const storage::BatchCancelled& cancelled) const {
    storage::StoredBatch& batch = state.batches[cancelled.batch];
    if (!batch.batch) return Fail(ErrorKind::kInvalid, "there is no such batch");
    batch.cancelled = true;
    batch.closed = true;
    return {};
  }
};

Result<storage::Recovery> ModelDisk::Open() {
  if (is_full_) return Fail(ErrorKind::kFull, "no room");  // the epoch has to be written
  storage::Recovery recovery{.epoch = ++state_.epoch};
  for (const auto& [target, drained] : state_.drains) recovery.drains.push_back(drained);
  for (const auto& [id, batch] : state_.batches) {
    recovery.next_batch = id.value + 1;
    if (batch.closed && batch.finished == batch.job_count) continue;
    recovery.unfinished.push_back(batch);
    for (std::uint32_t index = 0; index < batch.job_count; ++index) {
      const JobId job{.batch = id, .index = index};
      if (!state_.outcomes.contains(job)) {
        const JobSpec& spec = state_.jobs.at(job);
        recovery.jobs.push_back({.job = job, .spec = spec});
        if (spec.deadline_s != 0) recovery.jobs.back().accepted_at = state_.accepted_at.at(job);
      }
    }
  }
  return recovery;
}

void ModelDisk::CrashNow(Crash, std::span<const storage::Write> under_way, Dice& dice) {
  const bool was_durable = dice.Chance(0.5);
  if (!under_way.empty() && was_durable && !is_full_ && !fails_next_) (void)Apply(under_way);
  fails_next_ = false;
}

Status ModelDisk::Apply(std::span<const storage::Write> writes) {
  if (is_full_) return Fail(ErrorKind::kFull, "no room");
  if (std::exchange(fails_next_, false)) return Fail(ErrorKind::kSystem, "EIO");
  for (const storage::Write& write : writes) {
    // Not undone: a contradiction ends the run.
    LF_TRY_VOID(std::visit(Writer{state_}, write));
  }
  return {};
}

coordinator::ResolvedJob ModelDisk::Resolve(JobSpec spec,
                                            const coordinator::StoredConditions& conditions) {
  auto replayed = JobPool::Replay(spec);
  if (auto* failure = std::get_if<Failure>(&replayed)) {
    return {.spec = std::move(spec), .resolution = std::move(*failure)};
  }
  const auto measure = std::get<ResolvedTask>(replayed);
  if (spec.freshness == Freshness::kMeasureAgain) {
    return {.spec = std::move(spec), .resolution = measure};
  }
  for (const auto* known : {&state_.measured, &state_.failed}) {
    if (auto stored = FindIn(*known, spec, measure, conditions)) {
      return {.spec = std::move(spec), .resolution = std::move(stored)};
    }
  }
  return {.spec = std::move(spec), .resolution = measure};
}

storage::StoredAnswer ModelDisk::FindIn(const Known& known, const JobSpec& spec,
                                        const ResolvedTask& measure,
                                        const coordinator::StoredConditions& conditions) const {
  const auto measured = known.find(measure.subject);
  if (measured == known.end()) return nullptr;
  for (const auto& kind : conditions.KindsFor(spec, measure.placement)) {
    for (auto job = measured->second.rbegin(); job != measured->second.rend(); ++job) {
      const Outcome& outcome = state_.outcomes.at(*job);
      if (outcome.evaluation.conditions->hardware.hardware_class != kind.hardware_class) continue;
      storage::StoredResult stored{.evaluation = outcome.evaluation, .worker = outcome.worker};
      stored.evaluation.stages = {};
      if (!conditions.Accepts(spec, measure.placement, stored)) continue;
      return std::make_shared<const storage::StoredResult>(std::move(stored));
    }
  }
  return nullptr;
}

Result<std::optional<storage::StoredRequest>> ModelDisk::FindRequest(const Uuid& client,
                                                                     const Uuid& request) {
  const auto found = state_.requests.find({.client = client, .request = request});
  if (found == state_.requests.end()) return std::nullopt;
  return found->second;
}

wire::CoordinatorMessage ModelDisk::Outcomes(const wire::FetchOutcomes& fetch) {
  const auto batch = state_.batches.find(fetch.batch);
  if (batch == state_.batches.end()) return NotFound();
  wire::OutcomePage page{.batch = InfoOf(batch->second)};
  for (auto next = state_.sequences.upper_bound({fetch.batch, fetch.after_sequence});
       next != state_.sequences.end() && next->first.first == fetch.batch; ++next) {
    if (page.outcomes.size() == fetch.max_outcomes) break;
    page.outcomes.push_back(state_.outcomes.at(next->second));
  }
  return page;
}

wire::CoordinatorMessage ModelDisk::Answer(const wire::ListBatches& list) {
  wire::BatchList reply;
  for (auto batch = state_.batches.rbegin(); batch != state_.batches.rend(); ++batch) {
    if (reply.batches.size() == list.max_batches) break;
    reply.batches.push_back(InfoOf(batch->second));
  }
  return reply;
}

wire::CoordinatorMessage ModelDisk::Answer(const wire::ListOutcomes& list) {
  wire::OutcomeList reply{.next = list.after};
  auto next = state_.sequences.upper_bound({list.after.batch, list.after.sequence});
  for (; next != state_.sequences.end() && reply.outcomes.size() < list.max_outcomes; ++next) {
    reply.outcomes.push_back(state_.outcomes.at(next->second));
    reply.next = {.batch = next->first.first, .sequence = next->first.second};
  }
  reply.is_end = next == state_.sequences.end();
  return reply;
}

wire::CoordinatorMessage ModelDisk::Answer(const wire::ShowBatch& show) {
  if (state_.batches.empty()) return NotFound();
  const auto batch = show.batch ? state_.batches.find(show.batch) : std::prev(state_.batches.end());
  if (batch == state_.batches.end()) return NotFound();
  return InfoOf(batch->second);
}

wire::CoordinatorMessage ModelDisk::Answer(const wire::ExplainJob& explain) {
  auto stored = Find(explain.job);
  if (!stored) return NotFound();
  return coordinator::ExplainFinished(explain.job, std::move(stored->outcome));
}

wire::CoordinatorMessage ModelDisk::Job(JobId id, const std::optional<coordinator::LiveJob>& live) {
  auto stored = Find(id);
  if (!stored) return NotFound();
  wire::JobInfo info{.job = id, .spec = std::move(stored->spec)};
  if (stored->outcome) {
    info.state = wire::JobState::kFinished;
    info.outcome = std::move(stored->outcome);
  } else {
    info.state = live ? live->state : wire::JobState::kLeased;
  }
  return info;
}

std::optional<storage::StoredJob> ModelDisk::Find(JobId job) {
  const auto spec = state_.jobs.find(job);
  if (spec == state_.jobs.end()) return std::nullopt;
  storage::StoredJob found{.spec = spec->second};
  if (const auto outcome = state_.outcomes.find(job); outcome != state_.outcomes.end()) {
    found.outcome = outcome->second;
  }
  return found;
}

std::vector<storage::StoredBatch> ModelDisk::AllBatches() {
  std::vector<storage::StoredBatch> all;
  for (const auto& [id, batch] : state_.batches) all.push_back(batch);
  return all;
}

}  // namespace loopfleet::simulation
