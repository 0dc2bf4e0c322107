#include "tests/unit/wire/codec/fixed_messages.h"

namespace loopfleet::wire {
namespace {

constexpr ProtocolVersion kOneZero{.major = 1, .minor = 0};
constexpr BatchId kBatch{42};

Uuid UuidOf(std::uint8_t first) {
  Uuid uuid;
  for (std::uint8_t i = 0; i < uuid.bytes.size(); ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(first + i);
  }
  return uuid;
}

WallTime TimeOf(std::int64_t nanos) { return WallTime(Nanos(nanos)); }

HardwareFacts FixedHardware() {
  return {.device = DeviceKind::kCpu,
          .hardware_class = "cpu:example",
          .model = "Example(R) Processor @ 2.50GHz",
          .isa = "avx2",
          .microcode = "0x1",
          .clock_mhz = 2500.5,
          .physical_cores = 2,
          .logical_cores = 4,
          .l1d_bytes = 32768,
          .l2_bytes = 1048576,
          .l3_bytes = 37486592,
          .memory_bytes = 8589934592,
          .host = "bench-1",
          .kernel = "Linux 6.1.0"};
}

CompilerFacts FixedCompiler() { return {.llvm = "19.1.7", .tier = "general", .revision = "1"}; }

Conditions FixedConditions() {
  return {.hardware = FixedHardware(),
          .compiler = FixedCompiler(),
          .threads = 1,
          .cache = CacheState::kWarm,
          .policy = "fixed15x60us",
          .isolation = "process+rlimits"};
}

Measurement FixedMeasurement() {
  return {.elapsed_ns = 5210.5,
          .elapsed_low_ns = 5201.75,
          .elapsed_high_ns = 5233.0,
          .elapsed_min_ns = 5198.0,
          .elapsed_mean_ns = 5244.125,
          .spread = 0.003,
          .grade = Grade::kB,
          .iterations_per_sample = 12,
          .samples_ns = {5198.0, 5210.5, 5240.25},
          .sample_flags = {kSampleAccepted, kSampleAccepted, kSampleContended}};
}

Failure FixedFailure() {
  return {.code = FailureCode::kRunCrash,
          .message = "the kernel was ended by SIGSEGV – see the worker's log",
          .action_index = 3,
          .signal = 11};
}

SubjectKey FixedKey() {
  SubjectKey key;
  key.bytes = UuidOf(0x90).bytes;
  return key;
}

Evaluation MeasuredEvaluation() {
  Evaluation evaluation{.verdict = FixedMeasurement(),
                        .subject = FixedKey(),
                        .flop_count = 524288,
                        .conditions = FixedConditions(),
                        .scratch_bytes = 256,
                        .code_hash = "0123abcd",
                        .notes = {"L3 vectorize", "L1 unroll"},
                        .stages = {}};
  std::int64_t nanos = 1000;
  for (const Stage stage : kStages) evaluation.stages[stage] = Nanos(nanos++);
  return evaluation;
}

Evaluation ObservedEvaluation() {
  Evaluation evaluation = MeasuredEvaluation();
  evaluation.verdict = Observed{.values = {{"clock_mhz", 3700.5},
                                           {"load_ns", std::vector<double>{1.25, 4.5}},
                                           {"text", std::string("two\nlines")}}};
  return evaluation;
}

Evaluation FailedEvaluation() {
  Evaluation evaluation;
  evaluation.verdict = FixedFailure();
  evaluation.flop_count = 7;
  return evaluation;
}

BatchInfo FixedBatch() {
  return {.batch = kBatch,
          .client = UuidOf(0x10),
          .state = BatchState::kRunning,
          .submitted_at = TimeOf(1'700'000'000'123'456'789),
          .job_count = 5,
          .finished = 2,
          .failed = 1,
          .from_store = 1};
}

JobSpec PlainSpec() {
  JobSpec spec;
  spec.source = looptree::IrText{"program text\n"};
  return spec;
}

SubmitJobs FixedSubmit() {
  return {.request_id = UuidOf(0x20),
          .append_to = kBatch,
          .end = BatchEnd::kMoreFollows,
          .jobs = {FixedSpec(), PlainSpec()}};
}

}  // namespace

JobSpec FixedSpec() {
  JobSpec spec;
  spec.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"};
  spec.actions = {looptree::ToggleMode{}, looptree::ToggleThread{}, looptree::IdleSplit{},
                  looptree::Up{},         looptree::Down{},         looptree::SwapUp{},
                  looptree::SwapDown{},   looptree::Split{16},      looptree::Split{-1},
                  looptree::Merge{},      looptree::Unroll{},       looptree::Vectorize{},
                  looptree::Undo{},       looptree::Dummy{}};
  spec.rules = looptree::RuleSet::kLoopNest58;
  spec.on_illegal = looptree::OnIllegal::kSkip;
  spec.merge_all_first = true;
  spec.dialect = looptree::Dialect::kSimple;
  spec.device = DeviceRequest::kAny;
  spec.freshness = Freshness::kMeasureAgain;
  spec.tag = R"({"run": "é"})";
  spec.priority = -3;
  spec.threads = 4;
  spec.cache = CacheState::kCold;
  spec.labels = {"rack1", "quiet"};
  spec.affinity = "agent-7";
  spec.precision = 0.01;
  spec.budget_ms = 10;
  spec.cut_above_ns = 123456;
  spec.deadline_s = 60;
  spec.max_age_s = 3600.5;
  return spec;
}

Outcome FixedMeasuredOutcome() {
  return {.job = {.batch = kBatch, .index = 3},
          .sequence = 1,
          .source = OutcomeSource::kStored,
          .attempts = 2,
          .worker = "bench-1:4711",
          .finished_at = TimeOf(1'700'000'001'000'000'001),
          .evaluation = MeasuredEvaluation(),
          .benchmark = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"},
          .actions = {looptree::Down{}, looptree::Split{8}},
          .tag = "17"};
}

Outcome FixedFailedOutcome() {
  Outcome outcome;
  outcome.job = {.batch = kBatch, .index = 0};
  outcome.sequence = 2;
  outcome.finished_at = TimeOf(1'700'000'002'000'000'002);
  outcome.evaluation = FailedEvaluation();
  outcome.benchmark = looptree::IrText{"program text\n"};
  return outcome;
}

Named<ClientRequest> FixedRequests() {
  return {
      {"request_hello",
       {.number = 1,
        .message = ClientHello{.version = kOneZero,
                               .client = UuidOf(0x10),
                               .program = "loopfleet 0.1.0",
                               .capabilities = {"example"}}}},
      {"request_submit", {.number = 2, .message = FixedSubmit()}},
      {"request_fetch_outcomes",
       {.number = 3,
        .message =
            FetchOutcomes{
                .batch = kBatch, .after_sequence = 17, .max_outcomes = 100, .wait_ms = 250}}},
      {"request_cancel_batch", {.number = 4, .message = CancelBatch{.batch = kBatch}}},
      {"request_list_batches", {.number = 5, .message = ListBatches{.max_batches = 9}}},
      {"request_show_batch", {.number = 6, .message = ShowBatch{.batch = kBatch}}},
      {"request_show_job", {.number = 7, .message = ShowJob{.job = {.batch = kBatch, .index = 3}}}},
      {"request_list_workers", {.number = 8, .message = ListWorkers{}}},
      {"request_explain_job",
       {.number = 9, .message = ExplainJob{.job = {.batch = kBatch, .index = 3}}}},
      {"request_set_drain",
       {.number = 10,
        .message = SetDrain{.target = "bench-1",
                            .wish = DrainAction::kDrain,
                            .reason = "new memory",
                            .by = "ada@desk"}}},
      {"request_list_outcomes",
       {.number = 11,
        .message = ListOutcomes{.after = {.batch = kBatch, .sequence = 17},
                                .max_outcomes = 100,
                                .benchmark_prefix = "benchmark://mm-v0/"}}},
      {"request_show_fleet",
       {.number = 12, .message = ShowFleet{.after_event = 41, .max_events = 20}}},
      {"request_flag_results",
       {.number = 13,
        .message = FlagResults{.jobs = {{.batch = kBatch, .index = 3}, {.batch = kBatch}},
                               .reason = "an audit"}}},
      {"request_find_best",
       {.number = 14,
        .message =
            FindBest{.job = {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"},
                             .threads = 2},
                     .hardware_class = "cpu/avx2",
                     .max_jobs = 3}}},
  };
}

Named<CoordinatorReply> FixedReplies() {
  return {
      {"reply_welcome",
       {.number = 1,
        .message = Welcome{.version = kOneZero,
                           .coordinator = "loopfleet-coordinator 0.1.0",
                           .epoch = 12,
                           .capabilities = {"example"}}}},
      {"reply_accepted",
       {.number = 2, .message = Accepted{.batch = kBatch, .first_index = 3, .job_count = 2}}},
      {"reply_refused",
       {.number = 3, .message = Refused{.failure = FixedFailure(), .retry_after_ms = 1500}}},
      {"reply_outcomes",
       {.number = 4,
        .message = OutcomePage{.batch = FixedBatch(),
                               .outcomes = {FixedMeasuredOutcome(), FixedFailedOutcome()}}}},
      {"reply_batches", {.number = 5, .message = BatchList{.batches = {FixedBatch(), {}}}}},
      {"reply_batch", {.number = 6, .message = FixedBatch()}},
      {"reply_job",
       {.number = 7,
        .message = JobInfo{.job = {.batch = kBatch, .index = 3},
                           .state = JobState::kFinished,
                           .spec = FixedSpec(),
                           .attempts = 2,
                           .worker = "bench-1:4711",
                           .outcome = FixedMeasuredOutcome()}}},
      {"reply_workers",
       {.number = 8,
        .message = WorkerList{.workers = {{.worker = UuidOf(0x30),
                                           .name = "bench-1:4711",
                                           .state = WorkerState::kDraining,
                                           .pid = 4711,
                                           .slots = 2,
                                           .leased_jobs = 3,
                                           .finished_jobs = 1001,
                                           .since_heartbeat_ms = 900,
                                           .http = "127.0.0.1:9100",
                                           .hardware = FixedHardware(),
                                           .compiler = FixedCompiler()}}}}},
      {"reply_explanation",
       {.number = 9,
        .message = JobExplanation{.job = {.batch = kBatch, .index = 3},
                                  .state = JobState::kQueued,
                                  .reason = "queued: behind 17 of its client's",
                                  .priority = -3,
                                  .waited_ms = 1500,
                                  .deadline_left_ms = 58'500,
                                  .attempts = 1,
                                  .ahead_own = 17,
                                  .ahead_own_is_exact = false,
                                  .ahead_others = 40,
                                  .other_clients = 2,
                                  .follows = JobId{.batch = kBatch, .index = 1},
                                  .affinity_worker = "bench-1:4711",
                                  .unserved_ms = 250,
                                  .unserved_limit_ms = 30'000,
                                  .workers = {{.name = "bench-1:4711",
                                               .state = WorkerState::kQuarantined,
                                               .connected = false,
                                               .leased_jobs = 3,
                                               .credit = 8,
                                               .other_device = true,
                                               .max_threads = 2,
                                               .missing_labels = {"quiet"},
                                               .other_affinity = true}},
                                  .more_workers = 5,
                                  .worker = "bench-2:1",
                                  .leased_ms = 12,
                                  .outcome = FixedMeasuredOutcome()}}},
      {"reply_outcome_list",
       {.number = 10,
        .message = OutcomeList{.outcomes = {FixedMeasuredOutcome(), FixedFailedOutcome()},
                               .next = {.batch = kBatch, .sequence = 19},
                               .is_end = true}}},
      {"reply_jobs",
       {.number = 12,
        .message = JobList{.jobs = {{.job = {.batch = kBatch, .index = 3},
                                     .state = JobState::kFinished,
                                     .spec = FixedSpec(),
                                     .attempts = 2,
                                     .worker = "bench-1:4711",
                                     .outcome = FixedMeasuredOutcome()}}}}},
      {"reply_fleet",
       {.number = 11,
        .message =
            FleetInfo{.epoch = 12,
                      .started_at = FixedBatch().submitted_at,
                      .now = FixedBatch().submitted_at + std::chrono::seconds(90),
                      .version = "0.1.0",
                      .http = "127.0.0.1:9570",
                      .queued_cpu = 30,
                      .queued_cuda = 2,
                      .queued_any = 1,
                      .leased_jobs = 9,
                      .oldest_queued_at = FixedBatch().submitted_at + std::chrono::seconds(60),
                      .accepted_jobs = 142,
                      .finished_jobs = 100,
                      .failed_jobs = 7,
                      .shared_jobs = 40,
                      .workers_ready = 3,
                      .workers_draining = 1,
                      .workers_lost = 2,
                      .workers_quarantined = 1,
                      .storage_full = true,
                      .stopping = true,
                      .failures = {{.code = "RUN_CRASH", .count = 7}},
                      .last_event = 43,
                      .events = {{.sequence = 42,
                                  .at = FixedBatch().submitted_at,
                                  .kind = "worker.joined",
                                  .subject = "bench-1:4711"},
                                 {.sequence = 43,
                                  .at = FixedBatch().submitted_at,
                                  .kind = "batch.accepted",
                                  .batch = kBatch,
                                  .count = 142,
                                  .text = "more may follow"}}}}},
  };
}

Named<WorkerMessage> FixedWorkerMessages() {
  const JobId job{.batch = kBatch, .index = 3};
  return {
      {"worker_hello", WorkerHello{.version = kOneZero,
                                   .worker = UuidOf(0x30),
                                   .name = "bench-1:4711",
                                   .pid = 4711,
                                   .slots = 2,
                                   .credit = 8,
                                   .http = "127.0.0.1:9100",
                                   .hardware = FixedHardware(),
                                   .compiler = FixedCompiler(),
                                   .policy = "fixed15x60us",
                                   .held = {{.lease = LeaseId{77}, .job = job}},
                                   .capabilities = {"example"}}},
      {"worker_heartbeat",
       Heartbeat{.drain = DrainState::kDraining, .held = {LeaseId{77}, LeaseId{78}}}},
      {"worker_reports",
       Reports{.reports = {{.lease = LeaseId{77}, .job = job, .evaluation = MeasuredEvaluation()},
                           {.lease = LeaseId{78}, .job = job, .evaluation = FailedEvaluation()}}}},
      {"worker_goodbye", Goodbye{.returned = {LeaseId{79}}}},
      {"worker_returned", Returned{.leases = {LeaseId{79}, LeaseId{80}}}},
      {"worker_code_lookup", CodeLookup{.lease = LeaseId{79}, .code_hash = "0123abcd"}},
  };
}

Named<ClientRequest> FixedRequestsOf12() {
  SubmitJobs submit = FixedSubmit();
  for (const ProfileLevel level :
       {ProfileLevel::kRoots, ProfileLevel::kLoops, ProfileLevel::kLines}) {
    submit.jobs.push_back({.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"}});
    submit.jobs.back().profile = level;
  }
  return {{"request_submit_profiles", {.number = 2, .message = std::move(submit)}}};
}

namespace {

BlobPiece FixedPiece() {
  return {.sha256 = std::string(64, 'a'),
          .total = 9,
          .offset = 4,
          .bytes = std::string("BC\xC0\xDE\0", 5)};
}

}  // namespace

Named<ClientRequest> FixedRequestsOf13() {
  return {{"request_put_blob", {.number = 3, .message = FixedPiece()}}};
}
Named<CoordinatorReply> FixedRepliesOf13() {
  return {{"reply_blob_held", {.number = 3, .message = BlobHeld{.bytes = 9}}}};
}
Named<WorkerMessage> FixedWorkerMessagesOf13() {
  return {{"worker_blob_wanted", BlobWanted{.sha256 = std::string(64, 'a'), .offset = 4}}};
}
Named<WorkerCommand> FixedWorkerCommandsOf13() { return {{"command_blob_piece", FixedPiece()}}; }

Named<ClientRequest> FixedRequestsOf14() {
  return {{"request_get_blob",
           {.number = 3, .message = BlobWanted{.sha256 = std::string(64, 'a'), .offset = 4}}}};
}
Named<CoordinatorReply> FixedRepliesOf14() {
  return {{"reply_blob_piece", {.number = 3, .message = FixedPiece()}}};
}
Named<WorkerMessage> FixedWorkerMessagesOf14() {
  Evaluation evaluation = ObservedEvaluation();
  evaluation.verdict =
      Observed{.values = {{"Ir", Blob{.sha256 = std::string(64, 'b'), .bytes = 600'000}}}};
  return {{"worker_put_blob", FixedPiece()},
          {"worker_reports_blob", Reports{.reports = {{.lease = LeaseId{78},
                                                       .job = {.batch = kBatch, .index = 3},
                                                       .evaluation = std::move(evaluation)}}}}};
}
Named<WorkerCommand> FixedWorkerCommandsOf14() {
  return {{"command_blob_held",
           WorkerBlobHeld{.sha256 = std::string(64, 'a'), .bytes = 4, .failure = FixedFailure()}}};
}

Named<WorkerMessage> FixedLaterReports() {
  const JobId job{.batch = kBatch, .index = 3};
  return {
      {"worker_reports_observed",
       Reports{
           .reports = {{.lease = LeaseId{77}, .job = job, .evaluation = FailedEvaluation()},
                       {.lease = LeaseId{78}, .job = job, .evaluation = ObservedEvaluation()},
                       {.lease = LeaseId{79}, .job = job, .evaluation = MeasuredEvaluation()}}}},
  };
}

Named<WorkerCommand> FixedWorkerCommands() {
  return {
      {"command_welcome",
       WorkerWelcome{
           .version = kOneZero, .epoch = 12, .heartbeat_ms = 500, .capabilities = {"example"}}},
      {"command_leases", Leases{.leases = {{.lease = LeaseId{77},
                                            .job = {.batch = kBatch, .index = 3},
                                            .attempt = 2,
                                            .spec = FixedSpec()}}}},
      {"command_reports_stored", ReportsStored{.leases = {LeaseId{77}, LeaseId{78}}}},
      {"command_revoke", Revoke{.leases = {LeaseId{79}}}},
      {"command_heartbeat_answer", HeartbeatAnswer{}},
      {"command_hello_wanted", HelloWanted{}},
      {"command_refused", Refused{.failure = FixedFailure(), .retry_after_ms = 1500}},
      {"command_give_back", GiveBack{.leases = {LeaseId{79}, LeaseId{80}}}},
      {"command_code_lookup_answer",
       CodeLookupAnswer{.lease = LeaseId{79}, .found = MeasuredEvaluation()}},
  };
}

}  // namespace loopfleet::wire
