// Coordinator to client.

#include "common/wire/codec/blob_codec.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/column.h"
#include "common/wire/codec/facts_codec.h"
#include "common/wire/codec/hello_codec.h"
#include "common/wire/codec/job_codec.h"
#include "common/wire/codec/outcome_codec.h"
#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {
namespace {

constexpr EnumTable kBatchStates{
    "batch state", std::array{std::pair{schema::BatchState::OPEN, BatchState::kOpen},
                              std::pair{schema::BatchState::RUNNING, BatchState::kRunning},
                              std::pair{schema::BatchState::FINISHED, BatchState::kFinished},
                              std::pair{schema::BatchState::CANCELLED, BatchState::kCancelled}}};

constexpr EnumTable kJobStates{
    "job state", std::array{std::pair{schema::JobState::QUEUED, JobState::kQueued},
                            std::pair{schema::JobState::LEASED, JobState::kLeased},
                            std::pair{schema::JobState::FINISHED, JobState::kFinished}}};

constexpr EnumTable kWorkerStates{
    "worker state",
    std::array{std::pair{schema::WorkerState::READY, WorkerState::kReady},
               std::pair{schema::WorkerState::DRAINING, WorkerState::kDraining},
               std::pair{schema::WorkerState::LOST, WorkerState::kLost},
               std::pair{schema::WorkerState::QUARANTINED, WorkerState::kQuarantined}}};

constexpr EnumTable kQuarantineCauses{
    "cause of a quarantine",
    std::array{
        std::pair{schema::QuarantineCause::NONE, QuarantineCause::kNone},
        std::pair{schema::QuarantineCause::SOME_CANARY, QuarantineCause::kUnspecifiedCanary},
        std::pair{schema::QuarantineCause::ARITHMETIC_CANARY, QuarantineCause::kArithmeticCanary},
        std::pair{schema::QuarantineCause::SECOND_CACHE_CANARY,
                  QuarantineCause::kSecondCacheCanary},
        std::pair{schema::QuarantineCause::MEMORY_CANARY, QuarantineCause::kMemoryCanary},
        std::pair{schema::QuarantineCause::RESERVED_AUDITS, QuarantineCause::kUnspecifiedCanary}}};

constexpr EnumTable kSeverities{
    "severity", std::array{std::pair{schema::Severity::NOTICE, Severity::kNotice},
                           std::pair{schema::Severity::WARNING, Severity::kWarning},
                           std::pair{schema::Severity::PROBLEM, Severity::kProblem}}};

// Labels given by hand, and labels from the hardware, which may be as long as facts.
constexpr TextListBounds kWorkerLabels{.entries = 2 * kMaxLabels, .entry_bytes = 768};

void WriteWelcome(const Welcome& welcome, schema::Welcome::Builder builder) {
  WriteVersion(welcome.version, builder.initVersion());
  builder.setCoordinator(TextOf(FactText(welcome.coordinator)));
  builder.setEpoch(welcome.epoch);
  WriteCapabilities(welcome, builder);
  if (!welcome.incarnation.is_nil()) builder.setIncarnation(DataOf(welcome.incarnation));
}

Welcome ReadWelcome(schema::Welcome::Reader reader) {
  return {.version = ReadVersion(reader.getVersion()),
          .coordinator = ReadFact(reader.getCoordinator(), "the coordinator's name"),
          .epoch = reader.getEpoch(),
          .capabilities = ReadCapabilities(reader.getCapabilities()),
          .incarnation = reader.hasIncarnation()
                             ? ReadUuid(reader.getIncarnation(), "the database's incarnation")
                             : Uuid{}};
}

void WriteAccepted(const Accepted& accepted, schema::Accepted::Builder builder) {
  builder.setBatch(accepted.batch.value);
  builder.setFirstIndex(accepted.first_index);
  builder.setJobCount(accepted.job_count);
}

Accepted ReadAccepted(schema::Accepted::Reader reader) {
  return {.batch = BatchId{reader.getBatch()},
          .first_index = reader.getFirstIndex(),
          .job_count = reader.getJobCount()};
}

void WriteBatchInfo(const BatchInfo& info, schema::BatchInfo::Builder builder) {
  builder.setBatch(info.batch.value);
  builder.setClient(DataOf(info.client));
  builder.setState(kBatchStates.ToWire(info.state));
  builder.setSubmittedAt(NanosOf(info.submitted_at));
  builder.setJobCount(info.job_count);
  builder.setFinished(info.finished);
  builder.setFailed(info.failed);
  builder.setFromStore(info.from_store);
}

BatchInfo ReadBatchInfo(schema::BatchInfo::Reader reader) {
  return {.batch = BatchId{reader.getBatch()},
          .client = ReadUuid(reader.getClient(), "the batch's client"),
          .state = kBatchStates.FromWire(reader.getState()),
          .submitted_at = WallTimeOf(reader.getSubmittedAt()),
          .job_count = reader.getJobCount(),
          .finished = reader.getFinished(),
          .failed = reader.getFailed(),
          .from_store = reader.getFromStore()};
}

void WritePage(const OutcomePage& page, schema::OutcomePage::Builder builder) {
  for (const Outcome& outcome : page.outcomes) {
    LF_CHECK(outcome.job.batch == page.batch.batch, "outcome of batch {} in a page of batch {}",
             outcome.job.batch, page.batch.batch);
  }
  WriteBatchInfo(page.batch, builder.initBatch());
  WriteOutcomes(page.outcomes, builder.initOutcomes());
}

OutcomePage ReadPage(schema::OutcomePage::Reader reader) {
  OutcomePage page;
  page.batch = ReadBatchInfo(reader.getBatch());
  page.outcomes = ReadOutcomes(page.batch.batch, reader.getOutcomes());
  return page;
}

BatchList ReadBatches(capnp::List<schema::BatchInfo>::Reader list) {
  BatchList batches;
  for (const auto info : Bounded(list, kMaxBatchesPerList, "the list of batches")) {
    batches.batches.push_back(ReadBatchInfo(info));
  }
  return batches;
}

void WriteJobInfo(const JobInfo& info, schema::JobInfo::Builder builder) {
  WriteJobId(info.job, builder.initJob());
  builder.setState(kJobStates.ToWire(info.state));
  WriteJobSpec(info.spec, builder.initSpec());
  builder.setAttempts(info.attempts);
  builder.setWorker(TextOf(FactText(info.worker)));
  if (!info.outcome) return;
  LF_CHECK(info.outcome->job == info.job, "outcome of job {} for job {}", info.outcome->job,
           info.job);
  WriteOutcomes(std::span(&*info.outcome, 1), builder.initOutcome());
}

Outcome ReadOneOutcome(const JobId& job, schema::OutcomeColumns::Reader columns) {
  auto rows = ReadOutcomes(job.batch, columns);
  if (rows.size() != 1) RefuseMalformed(fmt::format("job {} has {} outcomes", job, rows.size()));
  if (rows[0].job != job) RefuseMalformed(fmt::format("job {} has the outcome of another", job));
  return std::move(rows[0]);
}

JobInfo ReadJobInfo(schema::JobInfo::Reader reader) {
  JobInfo info;
  info.job = ReadJobId(reader.getJob());
  info.state = kJobStates.FromWire(reader.getState());
  info.spec = ReadJobSpec(reader.getSpec());
  info.attempts = reader.getAttempts();
  info.worker = ReadFact(reader.getWorker(), "the job's worker");
  if (reader.hasOutcome()) info.outcome = ReadOneOutcome(info.job, reader.getOutcome());
  return info;
}

JobList ReadJobs(capnp::List<schema::JobInfo>::Reader list) {
  JobList jobs;
  for (const auto info : Bounded(list, kMaxBestJobs, "the list of jobs")) {
    jobs.jobs.push_back(ReadJobInfo(info));
  }
  return jobs;
}

void WriteDrain(const Drain& drain, schema::Drain::Builder builder) {
  builder.setTarget(TextOf(FactText(drain.target)));
  builder.setReason(TextOf(FactText(drain.reason)));
  builder.setBy(TextOf(FactText(drain.by)));
  builder.setSince(NanosOf(drain.since));
}

Drain ReadDrain(schema::Drain::Reader reader) {
  return {.target = ReadFact(reader.getTarget(), "the target of a drain"),
          .reason = ReadFact(reader.getReason(), "the reason of a drain"),
          .by = ReadFact(reader.getBy(), "who drains"),
          .since = WallTimeOf(reader.getSince())};
}

void WriteWorker(const WorkerInfo& info, schema::WorkerInfo::Builder builder) {
  builder.setWorker(DataOf(info.worker));
  builder.setName(TextOf(FactText(info.name)));
  builder.setState(kWorkerStates.ToWire(info.state));
  builder.setPid(info.pid);
  builder.setSlots(info.slots);
  builder.setLeasedJobs(info.leased_jobs);
  builder.setFinishedJobs(info.finished_jobs);
  builder.setSinceHeartbeatMs(info.since_heartbeat_ms);
  builder.setHttp(TextOf(FactText(info.http)));
  WriteHardware(info.hardware, builder.initHardware());
  WriteCompiler(info.compiler, builder.initCompiler());
  builder.setMaxThreads(info.max_threads);
  builder.setCanaryRatio(info.canary_ratio);
  if (info.drain) WriteDrain(*info.drain, builder.initDrain());
  builder.setQuarantine(TextOf(FactText(info.quarantine)));
  builder.setQuarantineCause(kQuarantineCauses.ToWire(info.quarantine_cause));
  builder.setQuarantinedMs(info.quarantined_ms);
  builder.setOutdated(TextOf(FactText(info.outdated)));
  builder.setRecentFigures(info.recent_figures);
  builder.setRecentImprecise(info.recent_imprecise);
  if (!info.labels.empty()) {
    WriteTexts(info.labels, builder.initLabels(static_cast<unsigned>(info.labels.size())));
  }
  if (!info.hindrances.empty()) {
    WriteTexts(info.hindrances,
               builder.initHindrances(static_cast<unsigned>(info.hindrances.size())));
  }
}

WorkerInfo ReadWorker(schema::WorkerInfo::Reader reader) {
  WorkerInfo info;
  info.worker = ReadUuid(reader.getWorker(), "the worker's id");
  info.name = ReadFact(reader.getName(), "the worker's name");
  info.state = kWorkerStates.FromWire(reader.getState());
  info.pid = reader.getPid();
  info.slots = reader.getSlots();
  info.leased_jobs = reader.getLeasedJobs();
  info.finished_jobs = reader.getFinishedJobs();
  info.since_heartbeat_ms = reader.getSinceHeartbeatMs();
  info.http = ReadFact(reader.getHttp(), "the worker's metrics address");
  info.hardware = ReadHardware(reader.getHardware());
  info.compiler = ReadCompiler(reader.getCompiler());
  info.max_threads = reader.getMaxThreads();
  info.canary_ratio = ReadAmount(reader.getCanaryRatio(), "canary ratio");
  if (reader.hasDrain()) info.drain = ReadDrain(reader.getDrain());
  info.quarantine = ReadFact(reader.getQuarantine(), "the reason of a quarantine");
  info.quarantine_cause = kQuarantineCauses.FromWire(reader.getQuarantineCause());
  info.quarantined_ms = reader.getQuarantinedMs();
  info.labels = ReadTexts(reader.getLabels(), kWorkerLabels, "the worker's labels");
  info.hindrances = ReadTexts(reader.getHindrances(), kHindranceBounds, "the hindrances");
  info.outdated = ReadFact(reader.getOutdated(), "what the worker lacks");
  info.recent_figures = reader.getRecentFigures();
  info.recent_imprecise = reader.getRecentImprecise();
  return info;
}

void WriteFit(const WorkerFit& fit, schema::WorkerFit::Builder builder) {
  builder.setName(TextOf(FactText(fit.name)));
  builder.setState(kWorkerStates.ToWire(fit.state));
  builder.setDisconnected(!fit.connected);
  builder.setLeasedJobs(fit.leased_jobs);
  builder.setCredit(fit.credit);
  builder.setOtherDevice(fit.other_device);
  builder.setMaxThreads(fit.max_threads);
  WriteTexts(fit.missing_labels,
             builder.initMissingLabels(static_cast<unsigned>(fit.missing_labels.size())));
  builder.setOtherAffinity(fit.other_affinity);
  builder.setQuarantine(TextOf(FactText(fit.quarantine)));
}

WorkerFit ReadFit(schema::WorkerFit::Reader reader) {
  WorkerFit fit;
  fit.name = ReadFact(reader.getName(), "the worker's name");
  fit.state = kWorkerStates.FromWire(reader.getState());
  fit.connected = !reader.getDisconnected();
  fit.leased_jobs = reader.getLeasedJobs();
  fit.credit = reader.getCredit();
  fit.other_device = reader.getOtherDevice();
  fit.max_threads = reader.getMaxThreads();
  fit.missing_labels =
      ReadTexts(reader.getMissingLabels(), {.entries = kMaxLabels, .entry_bytes = kMaxLabelBytes},
                "the missing labels");
  fit.other_affinity = reader.getOtherAffinity();
  fit.quarantine = ReadFact(reader.getQuarantine(), "the reason of a quarantine");
  return fit;
}

void WriteExplanation(const JobExplanation& explanation, schema::JobExplanation::Builder builder) {
  WriteJobId(explanation.job, builder.initJob());
  builder.setState(kJobStates.ToWire(explanation.state));
  builder.setReason(TextOf(ToUtf8(explanation.reason, kMaxFailureTextBytes)));
  builder.setPriority(explanation.priority);
  builder.setWaitedMs(explanation.waited_ms);
  if (explanation.deadline_left_ms) {
    builder.setDeadlineLeftMs(static_cast<std::int64_t>(*explanation.deadline_left_ms));
  }
  builder.setAttempts(explanation.attempts);
  builder.setAheadOwn(explanation.ahead_own);
  builder.setAheadOwnAtLeast(!explanation.ahead_own_is_exact);
  builder.setAheadOthers(explanation.ahead_others);
  builder.setOtherClients(explanation.other_clients);
  if (explanation.follows) WriteJobId(*explanation.follows, builder.initFollows());
  builder.setAffinityWorker(TextOf(FactText(explanation.affinity_worker)));
  builder.setUnservedMs(explanation.unserved_ms);
  builder.setUnservedLimitMs(explanation.unserved_limit_ms);
  LF_CHECK(explanation.workers.size() <= kMaxExplainedWorkers, "{} workers explained",
           explanation.workers.size());
  auto workers = builder.initWorkers(static_cast<unsigned>(explanation.workers.size()));
  for (unsigned i = 0; i < workers.size(); ++i) WriteFit(explanation.workers[i], workers[i]);
  builder.setMoreWorkers(explanation.more_workers);
  builder.setWorker(TextOf(FactText(explanation.worker)));
  builder.setLeasedMs(explanation.leased_ms);
  if (!explanation.outcome) return;
  LF_CHECK(explanation.outcome->job == explanation.job, "outcome of job {} for job {}",
           explanation.outcome->job, explanation.job);
  WriteOutcomes(std::span(&*explanation.outcome, 1), builder.initOutcome());
}

JobExplanation ReadExplanation(schema::JobExplanation::Reader reader) {
  JobExplanation explanation;
  explanation.job = ReadJobId(reader.getJob());
  explanation.state = kJobStates.FromWire(reader.getState());
  explanation.reason = ReadText(reader.getReason(), kMaxFailureTextBytes, "the reason");
  explanation.priority = reader.getPriority();
  explanation.waited_ms = reader.getWaitedMs();
  if (reader.getDeadlineLeftMs() < -1) RefuseMalformed("the time to the deadline is below 0");
  if (reader.getDeadlineLeftMs() >= 0) {
    explanation.deadline_left_ms = static_cast<std::uint64_t>(reader.getDeadlineLeftMs());
  }
  explanation.attempts = reader.getAttempts();
  explanation.ahead_own = reader.getAheadOwn();
  explanation.ahead_own_is_exact = !reader.getAheadOwnAtLeast();
  explanation.ahead_others = reader.getAheadOthers();
  explanation.other_clients = reader.getOtherClients();
  if (reader.hasFollows()) explanation.follows = ReadJobId(reader.getFollows());
  explanation.affinity_worker = ReadFact(reader.getAffinityWorker(), "the affinity's worker");
  explanation.unserved_ms = reader.getUnservedMs();
  explanation.unserved_limit_ms = reader.getUnservedLimitMs();
  for (const auto fit : Bounded(reader.getWorkers(), kMaxExplainedWorkers, "the workers")) {
    explanation.workers.push_back(ReadFit(fit));
  }
  explanation.more_workers = reader.getMoreWorkers();
  explanation.worker = ReadFact(reader.getWorker(), "the job's worker");
  explanation.leased_ms = reader.getLeasedMs();
  if (reader.hasOutcome()) {
    explanation.outcome = ReadOneOutcome(explanation.job, reader.getOutcome());
  }
  return explanation;
}

WorkerList ReadWorkers(capnp::List<schema::WorkerInfo>::Reader list) {
  WorkerList workers;
  for (const auto info : Bounded(list, kMaxWorkersPerList, "the list of workers")) {
    workers.workers.push_back(ReadWorker(info));
  }
  return workers;
}

void WriteOutcomeList(const OutcomeList& list, schema::OutcomeList::Builder builder) {
  WriteOutcomes(list.outcomes, builder.initOutcomes());
  auto batch = builder.initBatch(static_cast<unsigned>(list.outcomes.size()));
  for (unsigned i = 0; i < batch.size(); ++i) batch.set(i, list.outcomes[i].job.batch.value);
  builder.setNextBatch(list.next.batch.value);
  builder.setNextSequence(list.next.sequence);
  builder.setIsEnd(list.is_end);
}

OutcomeList ReadOutcomeList(schema::OutcomeList::Reader reader) {
  OutcomeList list{
      .outcomes = ReadOutcomes(BatchId{}, reader.getOutcomes()),
      .next = {.batch = BatchId{reader.getNextBatch()}, .sequence = reader.getNextSequence()},
      .is_end = reader.getIsEnd()};
  const auto count = static_cast<std::uint32_t>(list.outcomes.size());
  const auto batch = OneForEachRow(reader.getBatch(), count, "batch");
  for (std::uint32_t i = 0; i < count; ++i) list.outcomes[i].job.batch = BatchId{batch[i]};
  return list;
}

void WriteEvent(const FleetEvent& event, schema::Event::Builder builder) {
  builder.setSequence(event.sequence);
  builder.setAt(NanosOf(event.at));
  builder.setKind(TextOf(ToUtf8(event.kind, kMaxKindBytes)));
  builder.setSubject(TextOf(FactText(event.subject)));
  if (event.batch) builder.setBatch(event.batch->value);
  builder.setCount(event.count);
  builder.setText(TextOf(FactText(event.text)));
}

FleetEvent ReadEvent(schema::Event::Reader reader) {
  FleetEvent event{.sequence = reader.getSequence(),
                   .at = WallTimeOf(reader.getAt()),
                   .kind = ReadText(reader.getKind(), kMaxKindBytes, "the kind of an event"),
                   .subject = ReadFact(reader.getSubject(), "the subject of an event")};
  if (reader.getBatch() != 0) event.batch = BatchId{reader.getBatch()};
  event.count = reader.getCount();
  event.text = ReadFact(reader.getText(), "the text of an event");
  return event;
}

void WriteAttention(const Attention& item, schema::Attention::Builder builder) {
  builder.setKind(TextOf(ToUtf8(item.kind, kMaxKindBytes)));
  builder.setSeverity(kSeverities.ToWire(item.severity));
  builder.setCount(item.count);
  builder.setSentence(TextOf(ToUtf8(item.sentence, kMaxFailureTextBytes)));
}

Attention ReadAttention(schema::Attention::Reader reader) {
  return {.kind = ReadText(reader.getKind(), kMaxKindBytes, "what needs attention"),
          .severity = kSeverities.FromWire(reader.getSeverity()),
          .count = reader.getCount(),
          .sentence = ReadText(reader.getSentence(), kMaxFailureTextBytes, "its sentence")};
}

void WriteFleet(const FleetInfo& fleet, schema::FleetInfo::Builder builder) {
  builder.setEpoch(fleet.epoch);
  builder.setStartedAt(NanosOf(fleet.started_at));
  builder.setNow(NanosOf(fleet.now));
  builder.setVersion(TextOf(FactText(fleet.version)));
  builder.setHttp(TextOf(FactText(fleet.http)));
  builder.setQueuedCpu(fleet.queued_cpu);
  builder.setQueuedCuda(fleet.queued_cuda);
  builder.setQueuedAny(fleet.queued_any);
  builder.setLeasedJobs(fleet.leased_jobs);
  if (fleet.oldest_queued_at) builder.setOldestQueuedAt(NanosOf(*fleet.oldest_queued_at));
  builder.setAcceptedJobs(fleet.accepted_jobs);
  builder.setFinishedJobs(fleet.finished_jobs);
  builder.setFailedJobs(fleet.failed_jobs);
  builder.setSharedJobs(fleet.shared_jobs);
  builder.setWorkersReady(fleet.workers_ready);
  builder.setWorkersDraining(fleet.workers_draining);
  builder.setWorkersLost(fleet.workers_lost);
  builder.setWorkersQuarantined(fleet.workers_quarantined);
  builder.setStorageFull(fleet.storage_full);
  builder.setStopping(fleet.stopping);
  LF_CHECK(fleet.failures.size() <= kMaxFailureCounts, "{} failures", fleet.failures.size());
  auto failures = builder.initFailures(static_cast<unsigned>(fleet.failures.size()));
  for (unsigned i = 0; i < failures.size(); ++i) {
    failures[i].setCode(TextOf(ToUtf8(fleet.failures[i].code, kMaxKindBytes)));
    failures[i].setCount(fleet.failures[i].count);
  }
  builder.setLastEvent(fleet.last_event);
  LF_CHECK(fleet.events.size() <= kMaxEventsPerList, "{} events", fleet.events.size());
  auto events = builder.initEvents(static_cast<unsigned>(fleet.events.size()));
  for (unsigned i = 0; i < events.size(); ++i) WriteEvent(fleet.events[i], events[i]);
  builder.setHealth(TextOf(ToUtf8(fleet.health.sentence, kMaxFailureTextBytes)));
  const std::vector<Attention>& items = fleet.health.attention;
  LF_CHECK(items.size() <= kMaxAttention, "{} things need attention", items.size());
  auto attention = builder.initAttention(static_cast<unsigned>(items.size()));
  for (unsigned i = 0; i < attention.size(); ++i) WriteAttention(items[i], attention[i]);
}

FleetInfo ReadFleet(schema::FleetInfo::Reader reader) {
  FleetInfo fleet;
  fleet.epoch = reader.getEpoch();
  fleet.started_at = WallTimeOf(reader.getStartedAt());
  fleet.now = WallTimeOf(reader.getNow());
  fleet.version = ReadFact(reader.getVersion(), "the coordinator's version");
  fleet.http = ReadFact(reader.getHttp(), "the coordinator's metrics address");
  fleet.queued_cpu = reader.getQueuedCpu();
  fleet.queued_cuda = reader.getQueuedCuda();
  fleet.queued_any = reader.getQueuedAny();
  fleet.leased_jobs = reader.getLeasedJobs();
  if (reader.getOldestQueuedAt() != 0) {
    fleet.oldest_queued_at = WallTimeOf(reader.getOldestQueuedAt());
  }
  fleet.accepted_jobs = reader.getAcceptedJobs();
  fleet.finished_jobs = reader.getFinishedJobs();
  fleet.failed_jobs = reader.getFailedJobs();
  fleet.shared_jobs = reader.getSharedJobs();
  fleet.workers_ready = reader.getWorkersReady();
  fleet.workers_draining = reader.getWorkersDraining();
  fleet.workers_lost = reader.getWorkersLost();
  fleet.workers_quarantined = reader.getWorkersQuarantined();
  fleet.storage_full = reader.getStorageFull();
  fleet.stopping = reader.getStopping();
  for (const auto failure : Bounded(reader.getFailures(), kMaxFailureCounts, "the failures")) {
    fleet.failures.push_back(
        {.code = ReadText(failure.getCode(), kMaxKindBytes, "a failure's code"),
         .count = failure.getCount()});
  }
  fleet.last_event = reader.getLastEvent();
  for (const auto event : Bounded(reader.getEvents(), kMaxEventsPerList, "the events")) {
    fleet.events.push_back(ReadEvent(event));
  }
  fleet.health.sentence = ReadText(reader.getHealth(), kMaxFailureTextBytes, "the health");
  for (const auto item : Bounded(reader.getAttention(), kMaxAttention, "the attention")) {
    fleet.health.attention.push_back(ReadAttention(item));
  }
  return fleet;
}

struct ReplyWriter {
  schema::CoordinatorReply::Builder builder;
  void operator()(const Welcome& welcome) { WriteWelcome(welcome, builder.initWelcome()); }
  void operator()(const Accepted& accepted) { WriteAccepted(accepted, builder.initAccepted()); }
  void operator()(const Refused& refused) { WriteRefused(refused, builder.initRefused()); }
  void operator()(const OutcomePage& page) { WritePage(page, builder.initOutcomes()); }
  void operator()(const BatchList& list) {
    auto wire = builder.initBatches(static_cast<unsigned>(list.batches.size()));
    for (unsigned i = 0; i < wire.size(); ++i) WriteBatchInfo(list.batches[i], wire[i]);
  }
  void operator()(const BatchInfo& info) { WriteBatchInfo(info, builder.initBatch()); }
  void operator()(const JobInfo& info) { WriteJobInfo(info, builder.initJob()); }
  void operator()(const JobList& list) {
    auto wire = builder.initJobs(static_cast<unsigned>(list.jobs.size()));
    for (unsigned i = 0; i < wire.size(); ++i) WriteJobInfo(list.jobs[i], wire[i]);
  }
  void operator()(const BlobHeld& held) { builder.setBlobHeld(held.bytes); }
  void operator()(const BlobPiece& piece) { WriteBlobPiece(piece, builder.initBlobPiece()); }
  void operator()(const WorkerList& list) {
    auto wire = builder.initWorkers(static_cast<unsigned>(list.workers.size()));
    for (unsigned i = 0; i < wire.size(); ++i) WriteWorker(list.workers[i], wire[i]);
  }
  void operator()(const OutcomeList& list) { WriteOutcomeList(list, builder.initOutcomeList()); }
  void operator()(const FleetInfo& fleet) { WriteFleet(fleet, builder.initFleet()); }
  void operator()(const JobExplanation& explanation) {
    WriteExplanation(explanation, builder.initExplanation());
  }
  void operator()(const UnknownMember&) { LF_CHECK(false, "UnknownMember only comes of decoding"); }
};

CoordinatorMessage ReadMessage(schema::CoordinatorReply::Reader reader) {
  switch (reader.which()) {
    case schema::CoordinatorReply::NONE: RefuseMalformed("the reply is empty");
    case schema::CoordinatorReply::WELCOME: return ReadWelcome(reader.getWelcome());
    case schema::CoordinatorReply::ACCEPTED: return ReadAccepted(reader.getAccepted());
    case schema::CoordinatorReply::REFUSED: return ReadRefused(reader.getRefused());
    case schema::CoordinatorReply::OUTCOMES: return ReadPage(reader.getOutcomes());
    case schema::CoordinatorReply::BATCHES: return ReadBatches(reader.getBatches());
    case schema::CoordinatorReply::BATCH: return ReadBatchInfo(reader.getBatch());
    case schema::CoordinatorReply::JOB: return ReadJobInfo(reader.getJob());
    case schema::CoordinatorReply::JOBS: return ReadJobs(reader.getJobs());
    case schema::CoordinatorReply::BLOB_HELD: return BlobHeld{.bytes = reader.getBlobHeld()};
    case schema::CoordinatorReply::BLOB_PIECE: return ReadBlobPiece(reader.getBlobPiece());
    case schema::CoordinatorReply::WORKERS: return ReadWorkers(reader.getWorkers());
    case schema::CoordinatorReply::OUTCOME_LIST: return ReadOutcomeList(reader.getOutcomeList());
    case schema::CoordinatorReply::FLEET: return ReadFleet(reader.getFleet());
    case schema::CoordinatorReply::EXPLANATION: return ReadExplanation(reader.getExplanation());
  }
  return UnknownMember{.member = static_cast<std::uint16_t>(reader.which())};
}

}  // namespace

std::string Encode(const CoordinatorReply& reply) {
  return EncodeFrame<schema::CoordinatorReply>([&](schema::CoordinatorReply::Builder builder) {
    builder.setNumber(reply.number);
    std::visit(ReplyWriter{builder}, reply.message);
  });
}

std::expected<CoordinatorReply, Failure> DecodeCoordinatorReply(std::string_view frame) {
  return DecodeFrame<schema::CoordinatorReply>(frame, [](schema::CoordinatorReply::Reader reader) {
    return CoordinatorReply{.number = reader.getNumber(), .message = ReadMessage(reader)};
  });
}

std::expected<std::variant<CoordinatorReply, ColumnPage>, Failure> DecodeCoordinatorReplyInColumns(
    std::string_view frame) {
  return DecodeFrame<schema::CoordinatorReply>(
      frame,
      [](schema::CoordinatorReply::Reader reader) -> std::variant<CoordinatorReply, ColumnPage> {
        if (!reader.isOutcomes()) {
          return CoordinatorReply{.number = reader.getNumber(), .message = ReadMessage(reader)};
        }
        const auto page = reader.getOutcomes();
        ColumnPage columns{.number = reader.getNumber(), .batch = ReadBatchInfo(page.getBatch())};
        columns.outcomes = ReadOutcomeColumns(columns.batch.batch, page.getOutcomes());
        return columns;
      });
}

}  // namespace loopfleet::wire
