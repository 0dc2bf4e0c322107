#include "coordinator/core/handlers/on_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/counted.h"
#include "common/job/plausibility.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/lease_return.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/dispatch/rebalance.h"
#include "coordinator/core/dispatch/retry.h"
#include "coordinator/core/handlers/on_drain.h"
#include "coordinator/core/handlers/on_submit.h"
#include "coordinator/core/handlers/report_validation.h"
#include "coordinator/core/rules/freshness.h"
#include "coordinator/core/tables/client_usage.h"
#include "storage/record.h"

namespace loopfleet::coordinator {
namespace {

using wire::WorkerState;

void Send(Transaction& tx, const PeerId& peer, wire::WorkerCommand command) {
  tx.effects.push_back(SendToWorker{.peer = peer, .command = std::move(command)});
}

void Observe(Transaction& tx, WorkerChange change, const Worker& worker, std::size_t leases) {
  tx.effects.push_back(Observation{WorkerChanged{
      .change = change, .name = worker.facts.name, .leases = static_cast<std::uint32_t>(leases)}});
}

void RefuseWorker(Transaction& tx, const PeerId& peer, const std::string& name, Failure failure,
                  std::uint32_t retry_after_ms) {
  tx.effects.push_back(Observation{RequestWasRefused{failure.code}});
  tx.effects.push_back(Observation{WorkerChanged{WorkerChange::kRefused, name, 0}});
  Send(tx, peer, wire::Refused{.failure = std::move(failure), .retry_after_ms = retry_after_ms});
}

// Whether the worker may keep a job under a lease that is not in the LeaseTable. A lease of this
// run is accepted only if the job has counted it. For a lease of an earlier run there is only the
// worker's word, so the worker must at least be one that may run the job. Its credit does not
// count: the jobs that it finished while no coordinator was there come on top of it.
bool MayAdopt(const State& state, const Worker& worker, const Job& job, LeaseId lease,
              bool is_counted) {
  if (state.leases.IsOfThisRun(lease) && !is_counted) return false;
  const bool has_failed_it = std::ranges::find(job.failed_attempts, worker.id(),
                                               &FailedAttempt::worker) != job.failed_attempts.end();
  const bool is_for_others =
      StateOf(worker) == WorkerState::kQuarantined && state.workers.HasReady(DemandOf(job));
  return !is_for_others && !has_failed_it && Serves(worker.supply(), DemandOf(job));
}

// Whether a job that another worker holds should rather continue on this one. Either that one got
// it after the restart, and this one has worked on it for longer. Or both had it before, and this
// one got it later, when the other lease had ended: ids ascend.
bool IsAheadOfItsHolder(const Transaction& tx, const Worker& worker, const Job& job,
                        LeaseId lease) {
  const State& state = tx.state;
  const LeaseRecord& holder = *state.leases.Find(std::get<Leased>(job.progress).lease);
  return tx.now.instant < state.reattach_until && !state.leases.IsOfThisRun(lease) &&
         (state.leases.IsOfThisRun(holder.id) || holder.id < lease) &&
         holder.worker != worker.id() && job.failed_attempts.empty();
}

// Takes the job from the worker that holds it. If that worker cannot be told to drop it, its
// progress is unknown and the lease still counts. The caller decides what happens to the job.
void TakeFromHolder(Transaction& tx, Job& job) {
  const LeaseId lease = std::get<Leased>(job.progress).lease;
  const Worker& holder = *tx.state.workers.Find(tx.state.leases.Find(lease)->worker);
  EndLease(tx, lease);
  if (!holder.peer) return;
  std::erase(job.counted, lease);
  Send(tx, *holder.peer, wire::Revoke{.leases = {lease}});
}

// Enters a lease that the worker reports and the LeaseTable does not have. False if the job is
// finished, another worker holds it for good, or the lease's result has been received. A lease that
// was taken for unrun, or is from an earlier run, now counts as an attempt.
bool Adopt(Transaction& tx, Worker& worker, const wire::HeldLease& held) {
  State& state = tx.state;
  if (!state.leases.WasGranted(held.lease)) return false;
  Job* job = state.jobs.Find(held.job);
  if (job == nullptr || IsCancelled(state, held.job)) return false;
  const bool is_elsewhere = std::holds_alternative<Leased>(job->progress);
  if (is_elsewhere && !IsAheadOfItsHolder(tx, worker, *job, held.lease)) return false;
  const bool is_counted = std::ranges::find(job->counted, held.lease) != job->counted.end();
  if (!is_counted && job->attempts() >= state.limits.max_attempts) return false;
  if (!MayAdopt(state, worker, *job, held.lease, is_counted)) return false;
  if (!BindAffinity(tx, *job, worker)) return false;  // its affinity is bound elsewhere by now
  if (is_elsewhere) TakeFromHolder(tx, *job);
  if (std::holds_alternative<Queued>(job->progress)) LeaveQueue(tx, *job);
  if (std::holds_alternative<Retrying>(job->progress)) LeaveRetries(tx, *job);
  if (std::holds_alternative<Following>(job->progress)) {
    state.single_flight.Leave(QuestionOf(*job), job->id);  // it runs by itself now
    job->sharing = Sharing::kAlone;
  }
  if (job->sharing == Sharing::kShares) LeadFlight(tx, *job);
  LeaseRecord& lease = state.leases.Adopt(held.lease, held.job, worker.id(), tx.now.instant);
  lease.was_held = true;
  state.workers.AddRunning(worker, held.lease);
  job->progress = Leased{held.lease};
  if (!is_counted) {
    job->counted.push_back(held.lease);
  }
  return true;
}

// Returns leases that a live worker says it does not have: they never arrived, or it dropped them.
void ReturnMissing(Transaction& tx, const std::set<LeaseId>& missing) {
  for (auto lease = missing.rbegin(); lease != missing.rend(); ++lease) {
    const bool was_held = tx.state.leases.Find(*lease)->was_held;
    ReturnLease(tx, *lease, was_held ? LeaseEnd::kLost : LeaseEnd::kUnseen);
  }
}

// The leases that the worker would list if it had received them. One granted a moment ago over its
// present connection may have crossed its message.
std::set<LeaseId> ArrivedBy(const Transaction& tx, const Worker& worker) {
  std::set<LeaseId> arrived;
  for (const LeaseId lease : worker.running) {
    const Instant granted_at = tx.state.leases.Find(lease)->granted_at;
    if (granted_at + tx.state.limits.lease_arrival <= tx.now.instant) arrived.insert(lease);
  }
  return arrived;
}

// Makes both sides' leases agree: what the worker lost goes back to the queue; what only the worker
// knows is adopted or revoked. `missing`: the leases that it has lost unless it holds them.
void Reconcile(Transaction& tx, Worker& worker, const std::vector<wire::HeldLease>& held,
               std::set<LeaseId> missing) {
  wire::Revoke revoke;
  for (const wire::HeldLease& lease : held) {
    LeaseRecord* known = tx.state.leases.Find(lease.lease);
    if (known != nullptr && known->worker == worker.id() && known->job == lease.job) {
      known->was_held = true;
      missing.erase(lease.lease);
    } else if (known != nullptr || !Adopt(tx, worker, lease)) {
      revoke.leases.push_back(lease.lease);
    }
  }
  ReturnMissing(tx, missing);
  if (!revoke.leases.empty()) Send(tx, *worker.peer, std::move(revoke));
}

std::size_t WorkersWith(const State& state, const KeyText& key) {
  return static_cast<std::size_t>(std::ranges::count_if(
      state.workers.all(), [&](const auto& entry) { return entry.second.key == key; }));
}

// Whether the key has workers of so many other kinds that this worker's kind exceeds the limit.
bool IsOneKindTooMany(const State& state, const wire::WorkerHello& hello, const KeyText& key) {
  const WorkerKind kind = KindOf(hello);
  std::vector<WorkerKind> others;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.key != key || worker.state == WorkerState::kLost || id == hello.worker) continue;
    if (IsOfKind(worker.facts, kind)) return false;
    const auto is_its_kind = [&](const WorkerKind& other) { return IsOfKind(worker.facts, other); };
    if (std::ranges::none_of(others, is_its_kind)) others.push_back(KindOf(worker.facts));
  }
  return others.size() >= state.limits.max_kinds_per_key;
}

void OnHello(Transaction& tx, const PeerId& peer, wire::WorkerHello hello, const KeyText& key) {
  State& state = tx.state;
  if (hello.version.major != wire::kProtocolVersion.major) {
    Failure failure{
        .code = FailureCode::kVersionMismatch,
        .message = fmt::format("the worker speaks protocol {}.{}, the coordinator {}.{}",
                               hello.version.major, hello.version.minor,
                               wire::kProtocolVersion.major, wire::kProtocolVersion.minor)};
    return RefuseWorker(tx, peer, hello.name, std::move(failure), 0);
  }
  if (!IsPlausibleClock(hello.hardware.clock_mhz)) {
    Failure failure{
        .code = FailureCode::kMalformed,
        .message = fmt::format("the worker states a clock of {} MHz; 0, or {} to {}",
                               hello.hardware.clock_mhz, kLeastClockMhz, kMostClockMhz)};
    return RefuseWorker(tx, peer, hello.name, std::move(failure), state.limits.retry_after_ms);
  }
  const bool known = state.workers.Find(hello.worker) != nullptr;
  if (!known && state.workers.size() >= state.limits.max_workers) {
    Failure failure{
        .code = FailureCode::kBusy,
        .message = fmt::format("{} registered already",
                               Counted(state.limits.max_workers, "worker is", "workers are"))};
    return RefuseWorker(tx, peer, hello.name, std::move(failure), state.limits.retry_after_ms);
  }
  if (!known && !key.empty() && WorkersWith(state, key) >= state.limits.max_workers_per_key) {
    Failure failure{.code = FailureCode::kBusy,
                    .message = fmt::format(
                        "{} registered with this key already",
                        Counted(state.limits.max_workers_per_key, "worker is", "workers are"))};
    return RefuseWorker(tx, peer, hello.name, std::move(failure), state.limits.retry_after_ms);
  }
  if (!key.empty() && IsOneKindTooMany(state, hello, key)) {
    Failure failure{
        .code = FailureCode::kQuotaExceeded,
        .message = fmt::format("workers of {} kinds (hardware class, compiler, policy) are "
                               "registered with this key already (the limit)",
                               state.limits.max_kinds_per_key)};
    return RefuseWorker(tx, peer, hello.name, std::move(failure), state.limits.retry_after_ms);
  }
  const std::vector<wire::HeldLease> held = std::move(hello.held);
  // Workers of one class are comparable only at one reference clock; each measured its own.
  double& clock_mhz = hello.hardware.clock_mhz;
  const bool is_remembered = state.reference_mhz.contains(hello.hardware.hardware_class);
  if (clock_mhz > 0 &&
      (is_remembered || state.reference_mhz.size() < state.limits.max_hardware_classes)) {
    const double reference =
        state.reference_mhz.try_emplace(hello.hardware.hardware_class, clock_mhz).first->second;
    // Its arithmetic peak scales with the clock, and its times are stated at this one.
    const bool is_stated_at_it = hello.hardware.device == DeviceKind::kCpu;
    if (is_stated_at_it) hello.hardware.peaks.flop_per_second *= reference / clock_mhz;
    clock_mhz = reference;
  }
  // A hello repeated because its answer was late was sent while leases were granted upon the first
  // one. What was sent over another connection is lost with it.
  const Worker* speaker = state.workers.FindByPeer(peer);
  const bool is_repeated = speaker != nullptr && speaker->id() == hello.worker;
  Worker& worker = state.workers.Welcome(peer, std::move(hello), tx.now.instant);
  worker.key = key;
  Send(tx, peer,
       wire::WorkerWelcome{
           .epoch = state.epoch,
           .heartbeat_ms = static_cast<std::uint32_t>(state.limits.heartbeat.count()),
           .capabilities = {std::string(wire::kCodeLookupCapability),
                            std::string(wire::kBlobCapability),
                            std::string(wire::kPutBlobCapability)},
           .reference_mhz = worker.facts.hardware.clock_mhz});
  Reconcile(tx, worker, held, is_repeated ? ArrivedBy(tx, worker) : worker.running);
  ApplyDrains(tx, worker);
  if (!known) state.workers.ForgetReplaced(worker);
  if (is_repeated) return;  // it has joined by the first one
  const bool reattached = known || !held.empty();
  Observe(tx, reattached ? WorkerChange::kReattached : WorkerChange::kJoined, worker,
          worker.running.size());
}

// The worker was quarantined. Its results from `since` on are flagged. Ready workers take
// over its jobs and remeasure its recent ones; jobs that none of them could run stay.
void Distrust(Transaction& tx, Worker& worker, Instant since) {
  State& state = tx.state;
  tx.writes.push_back(
      storage::ResultsSuspected{.worker = worker.facts.name,
                                .since = state.wall.EarliestSince(since),
                                .flagged_at = tx.now.wall,
                                .reason = fmt::format("the worker went into quarantine: {}",
                                                      QuarantineText(QuarantineOf(worker)))});
  state.workers.SetState(worker, StateOf(worker));
  std::set<LeaseId> taken;
  for (const LeaseId lease : worker.running) {
    const Job& job = state.jobs.At(state.leases.Find(lease)->job);
    if (state.workers.HasReady(DemandOf(job))) taken.insert(lease);
  }
  tx.effects.push_back(Observation{WorkerChanged{.change = WorkerChange::kQuarantined,
                                                 .name = worker.facts.name,
                                                 .leases = static_cast<std::uint32_t>(taken.size()),
                                                 .quarantine = QuarantineOf(worker)}});
  ReturnLeases(tx, taken, LeaseEnd::kUnrun);
  if (!taken.empty()) {
    Send(tx, *worker.peer, wire::Revoke{.leases = {taken.begin(), taken.end()}});
  }
  std::vector<ResolvedJob> again;
  for (MeasuredJob& measured : worker.in_doubt) {
    if (measured.reported_at < since) continue;
    const Placement placement = std::get<ResolvedTask>(measured.job.resolution).placement;
    if (!state.workers.HasReady(DemandOf(measured.job.spec, placement))) continue;
    measured.job.spec.freshness = Freshness::kMeasureAgain;
    again.push_back(std::move(measured.job));
  }
  worker.in_doubt.clear();
  worker.in_doubt_bytes = 0;
  SubmitInternalBatch(tx, std::move(again));
}

void ForgetOldestInDoubt(Worker& worker) {
  worker.in_doubt_bytes -= worker.in_doubt.front().bytes;
  worker.in_doubt.pop_front();
}

// When the doubt about a worker that begins to drift begins: when it was last steady, as it says,
// but no earlier than its first hello, because older results are of an earlier worker of its name,
// and no earlier than its last quarantine, which cast doubt on all before.
Instant DoubtedSince(const Worker& worker, Instant last_steady) {
  // A restarted coordinator does not know the first hello. A drift takes about 20 s to be noticed.
  constexpr auto kBeforeHello = std::chrono::minutes(1);
  return std::max({last_steady, worker.known_since - kBeforeHello, worker.quarantined_at});
}

void OnCanaries(Transaction& tx, Worker& worker, const wire::Heartbeat& heartbeat) {
  if (worker.canary == wire::CanaryState::kDrifting &&
      heartbeat.canary == wire::CanaryState::kSteady &&
      tx.now.instant < worker.quarantined_at + tx.limits().min_drift) {
    return;  // too early: the worker will report it again
  }
  const auto before = std::exchange(worker.canary, heartbeat.canary);
  worker.canary_ratio = heartbeat.canary_ratio;
  worker.drifting = heartbeat.drifting;
  // Doubt reaches no further back: no measurement is remeasured after that long.
  constexpr std::uint64_t kLongestDoubtMs = std::uint64_t{7} * 24 * 3600 * 1000;
  const Instant last_steady = tx.now.instant - std::chrono::milliseconds(std::min(
                                                   heartbeat.steady_since_ms, kLongestDoubtMs));
  if (heartbeat.canary == wire::CanaryState::kSteady) {
    // Measurements before the last steady window are past doubt. Before the first such window
    // nothing can be concluded.
    while (heartbeat.canary_ratio > 0 && !worker.in_doubt.empty() &&
           worker.in_doubt.front().reported_at < last_steady) {
      ForgetOldestInDoubt(worker);
    }
    if (before != heartbeat.canary) {
      worker.released_at = tx.now.instant;
      Observe(tx, WorkerChange::kReleased, worker, 0);
    }
  } else if (before != heartbeat.canary) {
    const Instant since = DoubtedSince(worker, last_steady);
    worker.quarantined_at = tx.now.instant;
    Distrust(tx, worker, since);
  }
}

void OnHeartbeat(Transaction& tx, Worker& worker, const wire::Heartbeat& heartbeat) {
  State& state = tx.state;
  worker.said = heartbeat.drain;
  Send(tx, *worker.peer, wire::HeartbeatAnswer{});
  OnCanaries(tx, worker, heartbeat);
  state.workers.SetState(worker, StateOf(worker));

  const std::set<LeaseId> held(heartbeat.held.begin(), heartbeat.held.end());
  for (const LeaseId lease : worker.running) {
    if (held.contains(lease)) state.leases.Find(lease)->was_held = true;
  }
  std::set<LeaseId> missing = ArrivedBy(tx, worker);
  std::erase_if(missing, [&](LeaseId lease) { return held.contains(lease); });
  ReturnMissing(tx, missing);

  wire::Revoke revoke;
  for (const LeaseId lease : held) {
    const LeaseRecord* record = state.leases.Find(lease);
    if (record == nullptr || record->worker != worker.id()) revoke.leases.push_back(lease);
  }
  if (!revoke.leases.empty()) Send(tx, *worker.peer, std::move(revoke));
}

// Excludes the time that the job waited in the worker.
Nanos TimeInWorker(const StageDurations& stages) {
  Nanos took{0};
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    took += stages[stage];
  }
  return took;
}

// A worker's latest measurements are in doubt until its canaries show that it was steady.
void RememberInDoubt(Transaction& tx, Worker& worker, Job job) {
  const ResolvedTask measure = ToMeasureOf(job);
  MeasuredJob measured{.reported_at = tx.now.instant,
                       .job = {.spec = std::move(job.spec), .resolution = measure}};
  measured.job.spec.tag.clear();  // its reply has been made
  measured.bytes = MemoryBytesOf(measured.job.spec);
  worker.in_doubt_bytes += measured.bytes;
  worker.in_doubt.push_back(std::move(measured));
  while (worker.in_doubt.size() > tx.limits().max_remeasured ||
         worker.in_doubt_bytes > tx.limits().max_remeasured_bytes) {
    ForgetOldestInDoubt(worker);
  }
}

// A doubtful timing cannot be told from a good one by itself, so the result says so. Of grade C or
// D, a copied figure has no link to its original, which another worker may have measured: the doubt
// does not reach that one.
void PutInDoubt(Evaluation& evaluation, const std::string& doubt) {
  if (auto* measurement = std::get_if<Measurement>(&evaluation.verdict)) {
    measurement->grade = std::max(measurement->grade, Grade::kC);  // the worse one
  } else if (auto* failure = std::get_if<Failure>(&evaluation.verdict);
             failure != nullptr && InfoOf(failure->code).policy.depends_on_time) {
    failure->message += fmt::format("; in doubt: {}", doubt);
  }
}

// Handles the report of a running lease. Returns whether the worker may forget it at once.
enum class Keep : bool { kForgetNow, kUntilDurable };
Keep OnReport(Transaction& tx, Worker& worker, LeaseRecord& lease, Evaluation&& evaluation) {
  State& state = tx.state;
  const Job& job = state.jobs.At(lease.job);
  ++worker.finished_jobs;
  const auto why = WhyImplausible(evaluation, job, worker);
  if (!why) {
    worker.job_took.Add(TimeInWorker(evaluation.stages));
  } else {
    tx.effects.push_back(Observation{
        ReportWasImplausible{.worker = worker.facts.name, .job = job.id, .reason = *why}});
    evaluation = Evaluation{
        .verdict = Failure{.code = FailureCode::kWorkerCrashed,
                           .message = fmt::format("worker {} sent a report that cannot be: {}",
                                                  worker.facts.name, *why)}};
  }
  if (!evaluation.ok() && evaluation.failure().code == FailureCode::kVersionMismatch) {
    tx.effects.push_back(Observation{LeaseWasUnreadable{
        .worker = worker.facts.name, .job = job.id, .reason = evaluation.failure().message}});
  }
  std::string doubt = DoubtOf(worker, lease);
  if (TryAgain(tx, worker, lease.id, evaluation, doubt)) return Keep::kForgetNow;
  const bool is_measured = evaluation.is_timed();
  const bool is_doubted = !doubt.empty();
  if (is_measured) {
    NoteContradiction(tx, worker, job);
    worker.recent_grades.Add(evaluation.measurement().grade);
  }
  if (is_doubted) PutInDoubt(evaluation, doubt);
  lease.stage = LeaseStage::kReported;
  state.workers.MarkReported(worker, lease.id);
  Job finished = FinishJob(tx, job.id,
                           {.verdict = Verdict::kAboutTheTree,
                            .source = OutcomeSource::kMeasured,
                            .evaluation = std::move(evaluation),
                            .worker = worker.facts.name,
                            .lease = lease.id,
                            .queued = lease.granted_at - job.accepted_at,
                            .doubt = std::move(doubt)});
  if (is_measured && !is_doubted) RememberInDoubt(tx, worker, std::move(finished));
  return Keep::kUntilDurable;
}

void OnReports(Transaction& tx, Worker& worker, wire::Reports reports) {
  wire::ReportsStored unwanted;
  tx.writes.reserve(reports.reports.size());
  tx.commit.outcomes.reserve(reports.reports.size());
  tx.finished.jobs.reserve(reports.reports.size());
  for (wire::Report& report : reports.reports) {
    LeaseRecord* lease = tx.state.leases.Find(report.lease);
    const bool matches =
        lease != nullptr && lease->worker == worker.id() && lease->job == report.job;
    if (matches && lease->stage == LeaseStage::kReported) continue;  // already on its way to disk
    if (!matches ||
        OnReport(tx, worker, *lease, std::move(report.evaluation)) == Keep::kForgetNow) {
      unwanted.leases.push_back(report.lease);
    }
  }
  if (!unwanted.leases.empty()) Send(tx, *worker.peer, std::move(unwanted));
}

void OnGoodbye(Transaction& tx, Worker& worker, const wire::Goodbye& goodbye) {
  std::set<LeaseId> unrun;
  for (const LeaseId lease : goodbye.returned) {
    if (worker.running.contains(lease)) unrun.insert(lease);
  }
  const std::size_t taken = worker.running.size();
  ReturnLeases(tx, unrun, LeaseEnd::kUnrun);
  ReturnLeases(tx, worker.running, LeaseEnd::kLost);
  Observe(tx, WorkerChange::kLeft, worker, taken);
  tx.state.workers.Remove(worker.id());
}

void OnCodeLookup(Transaction& tx, const Worker& worker, wire::CodeLookup lookup) {
  const LeaseRecord* lease = tx.state.leases.Find(lookup.lease);
  const bool is_running =
      lease != nullptr && lease->worker == worker.id() && lease->stage == LeaseStage::kRunning;
  const JobSpec* spec = is_running ? &tx.state.jobs.At(lease->job).spec : nullptr;
  if (spec == nullptr || spec->freshness != Freshness::kAllowStored) {
    return Send(tx, *worker.peer, wire::CodeLookupAnswer{.lease = lookup.lease});
  }
  const WorkerKind kind = KindOf(worker.facts);
  tx.effects.push_back(
      AnswerCodeLookup{.peer = *worker.peer,
                       .lookup = std::move(lookup),
                       .key = {.hardware_class = kind.hardware_class,
                               .compiler = kind.compiler,
                               .threads = spec->threads,
                               .cache = spec->cache,
                               .policy = kind.policy,
                               .precision = spec->precision,
                               .min_grade = spec->min_grade,
                               .measured_since = MeasuredSince(tx.now.wall, spec->max_age_s)},
                       .measured_by = spec->affinity.empty() ? std::string() : worker.facts.name});
}

struct MessageVisitor {
  Transaction& tx;
  const PeerId& peer;
  const KeyText& key;

  void operator()(wire::WorkerHello hello) const { OnHello(tx, peer, std::move(hello), key); }
  void operator()(const wire::Heartbeat& heartbeat) const {
    if (Worker* worker = Known()) OnHeartbeat(tx, *worker, heartbeat);
  }
  void operator()(wire::Reports reports) const {
    if (Worker* worker = Known()) OnReports(tx, *worker, std::move(reports));
  }
  void operator()(const wire::Goodbye& goodbye) const {
    if (Worker* worker = Speaker()) OnGoodbye(tx, *worker, goodbye);
  }
  void operator()(const wire::Returned& returned) const {
    if (Worker* worker = Known()) OnReturned(tx, *worker, returned);
  }
  void operator()(wire::CodeLookup lookup) const {
    if (const Worker* worker = Known()) OnCodeLookup(tx, *worker, std::move(lookup));
  }
  void operator()(wire::BlobWanted wanted) const {
    if (Known() != nullptr) {
      tx.effects.push_back(SendBlob{.to = {.peer = peer}, .wanted = std::move(wanted)});
    }
  }
  void operator()(wire::BlobPiece piece) const {
    if (Known() != nullptr) {
      tx.effects.push_back(KeepBlob{.from = {.peer = peer}, .piece = std::move(piece)});
    }
  }
  void operator()(const wire::UnknownMember& unknown) const {
    Failure failure{
        .code = FailureCode::kUnsupported,
        .message = fmt::format("worker messages of kind {} are not known here", unknown.member)};
    tx.effects.push_back(Observation{RequestWasRefused{failure.code}});
    Send(tx, peer, wire::Refused{.failure = std::move(failure)});
  }

  // A peer chooses its routing id itself and could use another's, so the key must match, too.
  Worker* Speaker() const {
    Worker* worker = tx.state.workers.FindByPeer(peer);
    return worker != nullptr && worker->key == key ? worker : nullptr;
  }
  Worker* Known() const {
    Worker* worker = Speaker();
    if (worker == nullptr) {
      Send(tx, peer, wire::HelloWanted{});
    } else {
      worker->heard_at = tx.now.instant;
    }
    return worker;
  }
};

}  // namespace

void OnWorkerSaid(Transaction& tx, WorkerSaid event) {
  std::visit(MessageVisitor{tx, event.peer, event.key}, std::move(event.message));
}

void OnWorkerUnreachable(Transaction& tx, const WorkerUnreachable& event) {
  State& state = tx.state;
  // Not lost yet: it may reconnect with the jobs it runs.
  if (Worker* worker = state.workers.FindByPeer(event.peer)) state.workers.Disconnect(*worker);
  // Several messages may find the connection broken; each reports its own leases.
  std::set<LeaseId> undelivered;
  for (const LeaseId id : event.undelivered) {
    const LeaseRecord* lease = state.leases.Find(id);
    if (lease != nullptr && lease->stage == LeaseStage::kRunning) undelivered.insert(id);
  }
  ReturnLeases(tx, undelivered, LeaseEnd::kUnrun);
}

void RemoveWorkersWith(Transaction& tx, const std::set<KeyText>& keys) {
  std::vector<Uuid> ids;
  for (const auto& [id, worker] : tx.state.workers.all()) {
    if (keys.contains(worker.key)) ids.push_back(id);
  }
  for (const Uuid& id : ids) {
    Worker& worker = *tx.state.workers.Find(id);
    const std::size_t taken = worker.running.size();
    ReturnLeases(tx, worker.running, LeaseEnd::kUnrun);  // none of the jobs is at fault
    Observe(tx, WorkerChange::kLeft, worker, taken);
    tx.state.workers.Remove(id);
  }
}

void LoseSilentWorkers(Transaction& tx) {
  State& state = tx.state;
  const Instant silent_since =
      tx.now.instant - state.limits.heartbeat * state.limits.missed_heartbeats;
  for (const Uuid& id : state.workers.HeardBefore(silent_since)) {
    Worker& worker = *state.workers.Find(id);
    const std::size_t taken = worker.running.size();
    ReturnLeases(tx, worker.running, LeaseEnd::kLost);
    state.workers.SetState(worker, WorkerState::kLost);
    Observe(tx, WorkerChange::kLost, worker, taken);
    state.workers.ForgetReplaced(worker);
  }
  state.workers.ForgetLost(tx.now.instant - state.limits.lost_worker_shown,
                           state.limits.max_lost_workers);
}

}  // namespace loopfleet::coordinator
