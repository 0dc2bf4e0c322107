#include "coordinator/shell/storage_queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/result.h"
#include "common/job/task.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"
#include "coordinator/core/contract/limits.h"
#include "coordinator/core/handlers/explanation.h"

namespace loopfleet::coordinator {
namespace {

// Outcomes per read; those that do not fit the page are read in vain: one, if all are large.
constexpr std::uint32_t kOutcomesPerRead = 128;
// Rows scanned for one page of all outcomes: about 5 ms, in which no other request is served.
constexpr std::uint32_t kOutcomesPerList = 256;

wire::BatchState StateOf(const storage::StoredBatch& batch) {
  if (batch.cancelled) return wire::BatchState::kCancelled;
  if (!batch.closed) return wire::BatchState::kOpen;
  return batch.finished < batch.job_count ? wire::BatchState::kRunning
                                          : wire::BatchState::kFinished;
}

wire::Refused NotFound(std::string message) {
  return {.failure = {.code = FailureCode::kNotFound, .message = std::move(message)}};
}

// Why there is no such batch.
wire::Refused NoBatch(storage::StoreReader& reader, BatchId batch) {
  const auto was_pruned = reader.WasPruned(batch);
  if (!was_pruned) return Unreadable(was_pruned.error());
  if (!*was_pruned) return NotFound(fmt::format("there is no batch {}", batch));
  return NotFound(fmt::format(
      "batch {} was pruned: it was old, and its jobs and outcomes were removed; results that were "
      "measured for it still answer: submit the jobs again",
      batch));
}

wire::Refused NoJob(storage::StoreReader& reader, JobId job) {
  const auto was_pruned = reader.WasPruned(job.batch);
  if (was_pruned && !*was_pruned) return NotFound(fmt::format("there is no job {}", job));
  return NoBatch(reader, job.batch);
}

// Whether the error may pass with time: the disk recovers, or another process releases the file.
bool MayPass(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUnavailable:
    case ErrorKind::kTimeout:
    case ErrorKind::kFull:
    case ErrorKind::kSystem: return true;
    case ErrorKind::kInvalid:
    case ErrorKind::kNotFound:
    case ErrorKind::kExists:
    case ErrorKind::kCorrupt:
    case ErrorKind::kClosed: return false;
  }
  return false;
}

// Fails if the job is about no loop schedules.
std::expected<ProgramKey, Failure> ProgramOf(const JobSpec& job) {
  JobSpec start{.source = job.source, .rules = job.rules};
  start.dialect = job.dialect;
  start.device = job.device;
  const TaskInfo& task = TaskOf(start.source);
  LF_TRY(const ResolvedTask resolved, task.resolve(start));
  if (resolved.program) return *resolved.program;
  return std::unexpected(Failure{
      .code = FailureCode::kMalformed,
      .message = fmt::format("a benchmark of kind {} has no schedules; one that has some is {}",
                             EnumName(task.kind), TaskOf(TaskKind::kLoopSchedule).example)});
}

wire::JobInfo InfoOf(storage::BestSchedule best) {
  Outcome outcome{.job = best.job,
                  .sequence = 1,
                  .source = OutcomeSource::kStored,
                  .worker = best.measured.worker,
                  .finished_at = best.measured.measured_at,
                  .evaluation = std::move(best.measured.evaluation),
                  .benchmark = best.spec.source,
                  .actions = best.spec.actions};
  return {.job = best.job,
          .state = wire::JobState::kFinished,
          .spec = std::move(best.spec),
          .worker = std::move(best.measured.worker),
          .outcome = std::move(outcome)};
}

}  // namespace

wire::Refused Unreadable(const Error& error) {
  const FailureCode code = MayPass(error.kind) ? FailureCode::kBusy : FailureCode::kStorageCorrupt;
  return {.failure = {.code = code, .message = error.message},
          .retry_after_ms = InfoOf(code).policy.is_retryable ? Limits{}.retry_after_ms : 0};
}

std::optional<Failure> WhyNotFlagged(storage::StoreReader& reader, const wire::FlagResults& flag) {
  for (const JobId id : flag.jobs) {
    const auto job = reader.ReadJob(id);
    if (!job) return Unreadable(job.error()).failure;
    if (!*job) return NoJob(reader, id).failure;
    if ((*job)->outcome) continue;
    return NotFound(fmt::format("job {} has no outcome to flag yet", id)).failure;
  }
  return std::nullopt;
}

wire::BatchInfo BatchInfoOf(const storage::StoredBatch& batch) {
  return {.batch = batch.batch,
          .client = batch.client,
          .state = StateOf(batch),
          .submitted_at = batch.accepted_at,
          .job_count = batch.job_count,
          .finished = batch.finished,
          .failed = batch.failed,
          .from_store = batch.from_store};
}

wire::CoordinatorMessage StorageQueries::Outcomes(const wire::FetchOutcomes& fetch) {
  const auto batch = reader_.FindBatch(fetch.batch);
  if (!batch) return Unreadable(batch.error());
  if (!*batch) return NoBatch(reader_, fetch.batch);
  wire::OutcomePage page{.batch = BatchInfoOf(**batch)};
  std::uint64_t after = fetch.after_sequence;
  std::size_t room = wire::kMaxMessageBytes - wire::kMessageOverheadBytes;
  const std::uint32_t most = std::min(fetch.max_outcomes, wire::kMaxOutcomesPerPage);
  while (page.outcomes.size() < most) {
    const auto wanted =
        std::min(most - static_cast<std::uint32_t>(page.outcomes.size()), kOutcomesPerRead);
    auto outcomes =
        reader_.ReadOutcomes(fetch.batch, after, {.max_rows = wanted, .max_bytes = room});
    if (!outcomes) return Unreadable(outcomes.error());
    for (Outcome& outcome : *outcomes) {
      const std::size_t size = wire::EncodedSize(outcome);
      if (size > room) return page;  // one outcome always fits (common/wire/bounds.h)
      room -= size;
      after = outcome.sequence;
      page.outcomes.push_back(std::move(outcome));
    }
    if (outcomes->empty() || after >= (*batch)->finished) break;
  }
  return page;
}

wire::CoordinatorMessage StorageQueries::Answer(const wire::ListOutcomes& list) {
  const std::uint32_t most = std::min(list.max_outcomes, kOutcomesPerList);
  std::size_t room = wire::kMaxMessageBytes - wire::kMessageOverheadBytes;
  auto rows = reader_.ListOutcomes(list.after, {.max_rows = most, .max_bytes = room},
                                   list.benchmark_prefix);
  if (!rows) return Unreadable(rows.error());
  wire::OutcomeList reply{.next = rows->next, .is_end = rows->is_end};
  for (Outcome& outcome : rows->outcomes) {
    const std::size_t size = wire::EncodedSize(outcome) + sizeof(BatchId::value);
    if (size > room) {  // the next page starts with this one
      const Outcome& last = reply.outcomes.back();
      reply.next = {.batch = last.job.batch, .sequence = last.sequence};
      reply.is_end = false;
      break;
    }
    room -= size;
    reply.outcomes.push_back(std::move(outcome));
  }
  return reply;
}

wire::CoordinatorMessage StorageQueries::Answer(const wire::FindBest& find) {
  const auto program = ProgramOf(find.job);
  if (!program) return wire::Refused{.failure = program.error()};
  auto found = reader_.FindBest({.program = *program,
                                 .hardware_class = find.hardware_class,
                                 .threads = find.job.threads,
                                 .cache = find.job.cache,
                                 .max = find.max_jobs});
  if (!found) return Unreadable(found.error());
  wire::JobList reply;
  std::size_t room = wire::kMaxMessageBytes - wire::kMessageOverheadBytes;
  for (storage::BestSchedule& best : *found) {
    wire::JobInfo info = InfoOf(std::move(best));
    const std::size_t size = wire::EncodedSize(info.spec) + wire::EncodedSize(*info.outcome);
    if (size > room) break;  // one always fits (common/wire/bounds.h)
    room -= size;
    reply.jobs.push_back(std::move(info));
  }
  return reply;
}

wire::CoordinatorMessage StorageQueries::Answer(const wire::ListBatches& list) {
  const auto batches =
      reader_.ListBatches(std::min<std::uint32_t>(list.max_batches, wire::kMaxBatchesPerList));
  if (!batches) return Unreadable(batches.error());
  wire::BatchList reply;
  for (const storage::StoredBatch& batch : *batches) reply.batches.push_back(BatchInfoOf(batch));
  return reply;
}

wire::CoordinatorMessage StorageQueries::Answer(const wire::ShowBatch& show) {
  const auto batch = show.batch ? reader_.FindBatch(show.batch) : reader_.NewestBatch();
  if (!batch) return Unreadable(batch.error());
  if (*batch) return BatchInfoOf(**batch);
  if (show.batch) return NoBatch(reader_, show.batch);
  return NotFound("no client has sent a batch yet");
}

wire::CoordinatorMessage StorageQueries::Answer(const wire::ExplainJob& explain, Unknown why) {
  const JobId id = explain.job;
  auto job = reader_.ReadJob(id);
  if (!job) return Unreadable(job.error());
  if (!*job) return NoJob(reader_, id);
  if (!(*job)->outcome && why == Unknown::kMayBeToCome) {
    return wire::JobExplanation{
        .job = id,
        .reason = "queued: the coordinator has restarted and has not loaded this job yet",
        .priority = (*job)->spec.priority};
  }
  return ExplainFinished(id, std::move((*job)->outcome));
}

wire::CodeLookupAnswer StorageQueries::Answer(const AnswerCodeLookup& question) {
  wire::CodeLookupAnswer answer{.lease = question.lookup.lease};
  const auto found =
      reader_.FindSameCode(question.lookup.code_hash, question.program, question.key);
  if (!found || *found == nullptr) return answer;
  const storage::StoredResult& result = **found;
  if (!question.measured_by.empty() && result.worker != question.measured_by) return answer;
  answer.found = result.evaluation;
  return answer;
}

wire::CoordinatorMessage StorageQueries::Job(JobId id, const std::optional<LiveJob>& live) {
  auto job = reader_.ReadJob(id);
  if (!job) return Unreadable(job.error());
  if (!*job) return NoJob(reader_, id);
  storage::StoredJob& stored = **job;
  wire::JobInfo info{.job = id, .spec = std::move(stored.spec)};
  if (stored.outcome) {
    info.state = wire::JobState::kFinished;
    info.attempts = stored.outcome->attempts;
    info.worker = stored.outcome->worker;
    info.outcome = std::move(stored.outcome);
  } else if (live) {
    info.state = live->state;
    info.attempts = live->attempts;
    info.worker = live->worker;
  } else {
    info.state = wire::JobState::kLeased;  // reported; its outcome is on its way to disk
  }
  return info;
}

}  // namespace loopfleet::coordinator
