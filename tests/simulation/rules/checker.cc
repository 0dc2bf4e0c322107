#include "tests/simulation/rules/checker.h"

#include <algorithm>

#include "coordinator/core/rules/placement.h"
#include "tests/simulation/message_text.h"

namespace loopfleet::simulation {

void Checker::WroteNonsense(const Error& error) {
  Violate("what is written fits what is there", error.message);
}

void Checker::WillWrite(Instant now, const storage::Write& write) {
  const auto finish = [&](const Outcome& outcome) {
    Obey(rules_.WillFinish(
             outcome, [&](const Uuid& worker) { return leases_.IsSilent(now, worker); },
             [&](const Uuid& worker) { return leases_.TakesJobs(worker); }),
         "an affinity has one worker");
  };
  if (const auto* accepted = std::get_if<storage::JobsAccepted>(&write)) {
    rules_.WillAccept(now, *accepted);
  } else if (const auto* finished = std::get_if<storage::JobFinished>(&write)) {
    finish(finished->outcome);
  } else if (const auto* answered = std::get_if<storage::JobsAnswered>(&write)) {
    for (const auto& job : answered->jobs) finish(OutcomeOf(*answered, job));
  } else if (const auto* suspected = std::get_if<storage::ResultsSuspected>(&write)) {
    Obey(leases_.doubts().WillSuspect(*suspected), "quarantine is respected");
  }
}

void Checker::Started() {
  rules_.Started();
  costs_.Started();
  leases_.Started();
}

void Checker::Ended() {
  leases_.Ended();
  client_at_.clear();
  asked_.clear();
}

// ---- clients ------------------------------------------------------------------------------------

void Checker::Heard(const PeerId& peer, const wire::ClientRequest& request) {
  if (const auto* hello = std::get_if<wire::ClientHello>(&request.message)) {
    client_at_[peer] = hello->client;
  }
  const auto client = client_at_.find(peer);
  Asked asked{.key = {peer, request.number},
              .message = request.message,
              .was_greeted = client != client_at_.end()};
  if (asked.was_greeted) asked.client = client->second;
  if (const auto* submit = std::get_if<wire::SubmitJobs>(&request.message)) {
    asked.content = ContentText(*submit);
    if (asked.was_greeted) {
      requests_[{asked.client, submit->request_id}].contents.insert(asked.content);
    }
  } else if (const auto* cancel = std::get_if<wire::CancelBatch>(&request.message)) {
    cancel_heard_.insert(cancel->batch);
    rules_.CancelHeard(cancel->batch);
  } else if (const auto* set = std::get_if<wire::SetDrain>(&request.message)) {
    // The state is unknown until this request is answered. Earlier answers no longer count.
    orders_.drained_hosts.erase(set->target);
    latest_drain_[set->target] = {peer, request.number};
  }
  // If a request arrives twice, the answer may belong to the first.
  if (const auto before = asked_.find({peer, request.number}); before != asked_.end()) {
    if (before->second.was_greeted && !asked.was_greeted) return;
  }
  asked_[{peer, request.number}] = std::move(asked);
}

void Checker::FoundUnreachable(const PeerId& client) { client_at_.erase(client); }

void Checker::Said(Instant now, const PeerId& peer, const wire::CoordinatorReply& reply) {
  said_at_ = now;
  const auto asked = asked_.find({peer, reply.number});
  if (asked == asked_.end()) {
    if (reply.number != 0) {
      Violate("replies answer requests", fmt::format("number {} to {}", reply.number, peer));
    }
    return;
  }
  std::visit(
      [&](const auto& message) {
        if constexpr (requires { this->Answered(asked->second, message); }) {
          Answered(asked->second, message);
        }
      },
      reply.message);
}

void Checker::Answered(const Asked& asked, const wire::Accepted& accepted) {
  const auto* submit = std::get_if<wire::SubmitJobs>(&asked.message);
  if (submit == nullptr) return Violate("replies answer requests", "an unasked Accepted");
  if (!asked.was_greeted) {
    return Violate("strangers are refused", fmt::format("batch {}", accepted.batch));
  }
  RequestView& request = requests_[{asked.client, submit->request_id}];
  if (request.accepted &&
      (*request.accepted != accepted || request.accepted_content != asked.content)) {
    Violate("I4 a request is accepted once",
            fmt::format("batch {}.{} first, then {}.{}", request.accepted->batch,
                        request.accepted->first_index, accepted.batch, accepted.first_index));
  }
  if (submit->append_to && *submit->append_to != accepted.batch) {
    Violate("jobs go where they are sent", fmt::format("batch {}", accepted.batch));
  }
  request.accepted = accepted;
  request.accepted_content = asked.content;
  accepted_batches_.insert(accepted.batch);
  rules_.Accepted(said_at_, {.batch = accepted.batch, .index = accepted.first_index},
                  accepted.job_count);
  const auto stored = disk_.FindRequest(asked.client, submit->request_id);
  if (!stored || !*stored) {
    return Violate("I1 durable before accepted", fmt::format("batch {}", accepted.batch));
  }
  for (std::uint32_t i = 0; i < submit->jobs.size(); ++i) {
    const auto job = disk_.Find({.batch = accepted.batch, .index = accepted.first_index + i});
    if (!job || job->spec != submit->jobs[i]) {
      return Violate("I1 durable before accepted",
                     fmt::format("job {}.{}", accepted.batch, accepted.first_index + i));
    }
  }
  std::uint64_t unfinished = 0;
  for (const auto& batch : disk_.AllBatches()) unfinished += batch.job_count - batch.finished;
  if (unfinished > mix_.limits.max_unfinished_jobs && !submit->jobs.empty()) {
    Violate("I8 unfinished jobs are bounded", fmt::format("{} jobs", unfinished));
  }
}

void Checker::Answered(const Asked& asked, const wire::OutcomePage& page) {
  const auto* fetch = std::get_if<wire::FetchOutcomes>(&asked.message);
  if (fetch == nullptr) return Violate("replies answer requests", "an unasked page");
  std::uint64_t sequence = fetch->after_sequence;
  for (const Outcome& outcome : page.outcomes) {
    if (outcome.sequence != ++sequence || outcome.job.batch != fetch->batch) {
      return Violate("outcomes come in order, without gaps",
                     fmt::format("batch {}: number {} where {} was due", fetch->batch,
                                 outcome.sequence, sequence));
    }
    const auto stored = disk_.Find(outcome.job);
    if (!stored || !stored->outcome) {
      return Violate("I1 durable before shown", fmt::format("job {}", outcome.job));
    }
    SeeOutcome(outcome);
  }
  if (page.outcomes.size() > fetch->max_outcomes || page.batch.finished > page.batch.job_count ||
      (!page.outcomes.empty() && page.batch.finished < sequence)) {
    Violate("pages are what was asked for", fmt::format("batch {}", fetch->batch));
  }
}

void Checker::Answered(const Asked& asked, const wire::BatchInfo& info) {
  const auto* cancel = std::get_if<wire::CancelBatch>(&asked.message);
  if (cancel == nullptr) return;
  if (info.state != wire::BatchState::kCancelled && info.state != wire::BatchState::kFinished) {
    // A batch whose last outcomes are on their way to disk is over, too.
    const bool is_closed = info.state == wire::BatchState::kRunning;
    if (!is_closed) Violate("cancelled is cancelled", fmt::format("batch {}", cancel->batch));
  }
  if (info.state == wire::BatchState::kCancelled) orders_.cancelled.insert(info.batch);
}

void Checker::Answered(const Asked& asked, const wire::WorkerList& list) {
  const auto* set = std::get_if<wire::SetDrain>(&asked.message);
  if (set == nullptr) return;
  if (!asked.was_greeted) return Violate("strangers are refused", set->target);
  const bool is_latest = latest_drain_[set->target] == asked.key;
  if (!is_latest) return;
  if (set->wish == wire::DrainAction::kDrain) orders_.drained_hosts.insert(set->target);
  for (const wire::WorkerInfo& info : list.workers) {
    const bool is_drained = info.drain && info.drain->target == set->target;
    if (is_drained != (set->wish == wire::DrainAction::kDrain)) {
      Violate("drains are shown as they are", fmt::format("{} on {}", info.name, set->target));
    }
  }
}

void Checker::Answered(const Asked& asked, const wire::JobExplanation& explanation) {
  const auto* explain = std::get_if<wire::ExplainJob>(&asked.message);
  if (explain == nullptr || explain->job != explanation.job || explanation.reason.empty()) {
    return Violate("replies answer requests", fmt::format("job {}", explanation.job));
  }
  const auto stored = disk_.Find(explanation.job);
  if (!stored) return Violate("I1 only what is on disk is told", fmt::format("{}", explain->job));
  const bool is_over = explanation.state == wire::JobState::kFinished;
  if ((stored->outcome && !is_over) || (explanation.outcome && !is_over) ||
      (explanation.outcome && explanation.outcome != stored->outcome)) {
    Violate("a job is where it is said to be",
            fmt::format("job {}: {}", explanation.job, explanation.reason));
  }
}

void Checker::Answered(const Asked& asked, const wire::Refused& refused) {
  const FailureCode code = refused.failure.code;
  const FailureInfo& info = InfoOf(code);
  if (refused.failure.message.empty() ||
      (info.policy.is_retryable && refused.retry_after_ms == 0)) {
    Violate("I8 refusals say why and when to try again", std::string(info.name));
  }
  const auto* fetch = std::get_if<wire::FetchOutcomes>(&asked.message);
  if (fetch != nullptr && code == FailureCode::kNotFound &&
      accepted_batches_.contains(fetch->batch)) {
    Violate("I1 nothing accepted is lost", fmt::format("batch {} is not found", fetch->batch));
  }
  const auto* submit = std::get_if<wire::SubmitJobs>(&asked.message);
  if (submit == nullptr || !asked.was_greeted) return;
  const RequestView& request = requests_[{asked.client, submit->request_id}];
  if (code == FailureCode::kDuplicateIdConflict && request.contents.size() < 2) {
    Violate("I4 only other content conflicts", submit->request_id.ToString());
  }
  const bool is_repeat = request.accepted && request.accepted_content == asked.content;
  if (is_repeat && code != FailureCode::kUnauthenticated) {
    Violate("I4 a repeat is answered as before",
            fmt::format("batch {}: {}", request.accepted->batch, info.name));
  }
  if (request.accepted && !is_repeat && code != FailureCode::kDuplicateIdConflict &&
      code != FailureCode::kUnauthenticated) {
    Violate("I4 other content conflicts", fmt::format("{}", info.name));
  }
  if (code == FailureCode::kNotFound && submit->append_to &&
      accepted_batches_.contains(*submit->append_to) &&
      !cancel_heard_.contains(*submit->append_to) && requests_.size() > 0) {
    for (const auto& batch : disk_.AllBatches()) {
      if (batch.batch == *submit->append_to && !batch.closed && batch.client == asked.client) {
        Violate("open batches take jobs", fmt::format("batch {}", batch.batch));
      }
    }
  }
}

// ---- outcomes -----------------------------------------------------------------------------------

void Checker::SeeOutcome(const Outcome& outcome) {
  const auto [seen, is_first] = seen_.try_emplace(outcome.job, outcome);
  if (is_first) return CheckOutcome(outcome);
  if (seen->second != outcome) {
    Violate("I2 one outcome, equal for every reader", fmt::format("job {}", outcome.job));
  }
}

bool Checker::IsServed(const JobSpec& spec, Placement placement) const {
  if (!spec.labels.empty()) {  // the last workers carry labels; the first are CUDA workers
    return placement == Placement::kCuda ? mix_.labelled_workers + mix_.cuda_workers > mix_.workers
           : placement == Placement::kCpu
               ? mix_.labelled_workers > 0 && mix_.workers > mix_.cuda_workers
               : mix_.labelled_workers > 0;
  }
  const bool has_cuda = mix_.cuda_workers > 0;
  const bool has_cpu = mix_.workers > mix_.cuda_workers;
  return placement == Placement::kCuda  ? has_cuda
         : placement == Placement::kCpu ? has_cpu
                                        : has_cuda || has_cpu;
}

void Checker::CheckOutcome(const Outcome& outcome) {
  const auto stored = disk_.Find(outcome.job);
  if (!stored) return Violate("I1 only what was accepted", fmt::format("job {}", outcome.job));
  const JobSpec& spec = stored->spec;
  if (outcome.benchmark != spec.source || outcome.actions != spec.actions ||
      outcome.tag != spec.tag) {
    Violate("an outcome repeats its job", fmt::format("job {}", outcome.job));
  }
  if (outcome.attempts > mix_.limits.max_attempts) {
    Violate("I7 at most three attempts", fmt::format("job {}: {}", outcome.job, outcome.attempts));
  }
  if (outcome.evaluation.ok() && outcome.finished_at.time_since_epoch().count() == 0) {
    Violate("an outcome says when", fmt::format("job {}", outcome.job));
  }
  Obey(rules_.Finished(outcome, spec), "an outcome is what its job asked for");
  const auto replayed = JobPool::Replay(spec);
  if (const auto* failure = std::get_if<Failure>(&replayed)) {
    const bool is_told = !outcome.evaluation.ok() && (outcome.evaluation.failure() == *failure) &&
                         outcome.attempts == 0;
    if (!is_told) Violate("invalid jobs are told so", fmt::format("job {}", outcome.job));
    return;
  }
  if (outcome.evaluation.ok()) {
    CheckMeasured(outcome, spec, std::get<ResolvedTask>(replayed));
  } else {
    CheckFailed(outcome, spec);
  }
}

void Checker::CheckMeasured(const Outcome& outcome, const JobSpec& spec,
                            const ResolvedTask& measure) {
  const LeaseRules::ReportView* found = leases_.ReportOf(outcome.evaluation);
  if (found == nullptr) {
    return Violate("I3 measured by somebody", fmt::format("job {}", outcome.job));
  }
  const LeaseRules::ReportView& view = *found;
  if (view.truth == Truth::kLie) {
    Violate("I11 no lie becomes a measurement", fmt::format("job {}", outcome.job));
  }
  if (outcome.evaluation.subject != measure.subject ||
      view.report.evaluation.subject != measure.subject) {
    Violate("I3 an answer is about its tree", fmt::format("job {}", outcome.job));
  }
  if (outcome.worker != view.worker) {
    Violate("I3 an outcome names who measured it",
            fmt::format("job {}: '{}', not '{}'", outcome.job, outcome.worker, view.worker));
  }
  Obey(leases_.doubts().Measured(outcome, view.report.lease),
       "what is measured in quarantine is in doubt");
  if (outcome.source != OutcomeSource::kMeasured) {
    if (spec.freshness == Freshness::kMeasureAgain) {
      Violate("fresh jobs are measured", fmt::format("job {}", outcome.job));
    }
    const auto& hardware = view.report.evaluation.conditions->hardware;
    if (!coordinator::Serves(hardware.device, measure.placement)) {
      Violate("I3 an answer is from where it may be", fmt::format("job {}", outcome.job));
    }
    return;
  }
  if (view.report.job != outcome.job) {
    Violate("I3 a result is its job's",
            fmt::format("job {} has that of {}", outcome.job, view.report.job));
  }
  if (view.rightful.empty()) {
    Violate("I3 from the holder of the lease",
            fmt::format("job {}: lease {} was over when its report came", outcome.job,
                        view.report.lease));
  }
}

void Checker::CheckFailed(const Outcome& outcome, const JobSpec& spec) {
  const Failure& failure = outcome.evaluation.failure();
  const Nature nature = pool_.NatureOf(spec);
  const auto replayed = JobPool::Replay(spec);
  const Placement placement = std::get<ResolvedTask>(replayed).placement;
  const bool is_calm = !mix_.has_faults();
  if (outcome.source == OutcomeSource::kStored && spec.freshness == Freshness::kMeasureAgain) {
    Violate("fresh jobs are measured", fmt::format("job {}", outcome.job));
  }
  bool is_explained = false;
  switch (failure.code) {
    case FailureCode::kRunTimeout: is_explained = nature == Nature::kHanging; break;
    case FailureCode::kRunCrash: is_explained = nature == Nature::kCrashing; break;
    case FailureCode::kUnstableTiming:
      is_explained = !is_calm && (outcome.source == OutcomeSource::kCoalesced ||
                                  outcome.attempts >= mix_.limits.max_attempts);
      break;
    case FailureCode::kCancelled: is_explained = cancel_heard_.contains(outcome.job.batch); break;
    case FailureCode::kNoMatchingWorker:
      is_explained = !is_calm || !IsServed(spec, placement) || mix_.poison > 0 ||
                     !spec.affinity.empty();  // the bound worker may not fit the job
      break;
    case FailureCode::kExpired: is_explained = rules_.IsOverdue(outcome, spec); break;
    case FailureCode::kWorkerLost:
      // The first lease may have ended its worker before the worker could report holding it. A
      // lease returned after its worker was silent may already count as lost.
      if (const LeaseRules::Life life = leases_.LifeOf(outcome.job);
          outcome.source == OutcomeSource::kMeasured && life.arrived > 0 &&
          life.arrived + 1 < mix_.limits.max_attempts &&
          life.granted <= mix_.limits.max_unseen_losses) {
        Violate("I7 only leases that arrived count",
                fmt::format("job {}: {} leases, {} were held", outcome.job, life.granted,
                            life.arrived));
      }
      [[fallthrough]];
    case FailureCode::kWorkerCrashed:
    case FailureCode::kDeviceFault:
      is_explained = (outcome.source != OutcomeSource::kMeasured ||
                      outcome.attempts >= mix_.limits.max_attempts) &&
                     (!is_calm || nature == Nature::kPoison || mix_.poison > 0);
      break;
    default: break;
  }
  if (!is_explained) {
    Violate("a failure has its reason",
            fmt::format("job {}: {}, after {} attempts: {}", outcome.job, InfoOf(failure.code).name,
                        outcome.attempts, failure.message));
  }
}

bool Checker::AllFinished() {
  for (const auto& batch : disk_.AllBatches()) {
    if (batch.finished < batch.job_count) return false;
  }
  return true;
}

void Checker::CheckTheEnd() {
  Obey(rules_.CheckOrder(Instant::max()), "jobs run in their turn, where they may");
  for (const storage::StoredBatch& batch : disk_.AllBatches()) {
    std::set<std::uint64_t> sequences;
    std::uint32_t failed = 0;
    for (std::uint32_t index = 0; index < batch.job_count; ++index) {
      const JobId id{.batch = batch.batch, .index = index};
      const auto job = disk_.Find(id);
      if (!job) return Violate("I1 nothing accepted is lost", fmt::format("job {}", id));
      if (!job->outcome) return Violate("I6 everything finishes", fmt::format("job {}", id));
      SeeOutcome(*job->outcome);
      sequences.insert(job->outcome->sequence);
      if (!job->outcome->evaluation.ok()) ++failed;
    }
    const bool is_dense =
        sequences.empty() || (*sequences.begin() == 1 && *sequences.rbegin() == batch.job_count);
    if (sequences.size() != batch.job_count || !is_dense || batch.finished != batch.job_count ||
        batch.failed != failed) {
      Violate("outcomes come in order, without gaps", fmt::format("batch {}", batch.batch));
    }
  }
  for (const auto& [key, request] : requests_) {
    if (!request.accepted) continue;
    for (std::uint32_t i = 0; i < request.accepted->job_count; ++i) {
      const JobId id{.batch = request.accepted->batch, .index = request.accepted->first_index + i};
      if (!disk_.Find(id)) Violate("I1 nothing accepted is lost", fmt::format("job {}", id));
    }
  }
}

}  // namespace loopfleet::simulation
