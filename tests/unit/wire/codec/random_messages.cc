#include "tests/unit/wire/codec/random_messages.h"

#include <nlohmann/json.hpp>

#include <array>
#include <string_view>

#include "common/base/check.h"

namespace loopfleet::wire {

using looptree::Action;

std::string RandomMessages::Text(std::size_t max_characters) {
  using namespace std::string_view_literals;
  static constexpr std::array kCharacters = {"a"sv,  "Z"sv, "7"sv, " "sv, "\""sv, "\0"sv,
                                             "\n"sv, "é"sv, "µ"sv, "→"sv, "𝛑"sv};
  std::string text;
  for (std::size_t i = Below(max_characters + 1); i > 0; --i) {
    text += kCharacters[Below(kCharacters.size())];
  }
  return text;
}

std::vector<std::string> RandomMessages::Texts(std::size_t max_count) {
  std::vector<std::string> texts(Below(max_count + 1));
  for (std::string& text : texts) text = Text();
  return texts;
}

Uuid RandomMessages::AnUuid() {
  Uuid uuid;
  for (auto& byte : uuid.bytes) byte = static_cast<std::uint8_t>(Below(256));
  uuid.bytes[0] |= 1;
  return uuid;
}

ProtocolVersion RandomMessages::Version() {
  return {.major = static_cast<std::uint16_t>(Below(65536)),
          .minor = static_cast<std::uint16_t>(Below(65536))};
}

Action RandomMessages::AnAction() {
  static const std::array<Action, std::variant_size_v<Action>> kActions = {
      looptree::ToggleMode{}, looptree::ToggleThread{}, looptree::IdleSplit{}, looptree::Up{},
      looptree::Down{},       looptree::SwapUp{},       looptree::SwapDown{},  looptree::Split{},
      looptree::Merge{},      looptree::Unroll{},       looptree::Vectorize{}, looptree::Undo{},
      looptree::Dummy{},      looptree::MergeAllLoops{}};
  Action action = kActions[Below(kActions.size())];
  if (auto* split = std::get_if<looptree::Split>(&action)) {
    split->factor = static_cast<std::int64_t>(random_.Next());
  }
  return action;
}

std::vector<Action> RandomMessages::Actions() {
  std::vector<Action> actions(Below(30));
  for (Action& action : actions) action = AnAction();
  return actions;
}

looptree::Source RandomMessages::Source() {
  if (Flip()) return looptree::BenchmarkUri{Text()};
  return looptree::IrText{Text(400)};
}

JobSpec RandomMessages::Spec() {
  JobSpec spec;
  spec.source = Source();
  spec.actions = Actions();
  spec.rules = Pick<looptree::RuleSet>(3);
  spec.on_illegal = Pick<looptree::OnIllegal>(2);
  spec.merge_all_first = Flip();
  if (Flip()) spec.dialect = Pick<looptree::Dialect>(2);
  spec.device = Pick<DeviceRequest>(4);
  spec.freshness = Pick<Freshness>(2);
  spec.tag = nlohmann::json(Text(60)).dump();
  spec.priority = static_cast<std::int32_t>(Number32());
  spec.threads = Number32();
  spec.cache = Pick<CacheState>(2);
  spec.labels = Texts(4);
  spec.passes = Texts(4);
  spec.observe = Texts(2);
  spec.affinity = Text();
  spec.precision = Real();
  spec.budget_ms = Real();
  spec.cut_above_ns = random_.Next();
  spec.deadline_s = Real();
  spec.max_age_s = Real();
  spec.min_grade = kAllGrades[Below(kAllGrades.size())];
  spec.profile = Pick<ProfileLevel>(4);
  return spec;
}

Failure RandomMessages::AFailure() {
  Failure failure;
  failure.code = FailureTable()[Below(FailureTable().size())].code;
  failure.message = Text(80);
  if (Flip()) failure.action_index = Number32();
  failure.signal = static_cast<std::int32_t>(Number32());
  return failure;
}

Measurement RandomMessages::AMeasurement() {
  Measurement measurement{.elapsed_ns = Real(),
                          .elapsed_low_ns = Real(),
                          .elapsed_high_ns = Real(),
                          .elapsed_min_ns = Real(),
                          .elapsed_mean_ns = Real(),
                          .spread = Real(),
                          .grade = Pick<Grade>(4),
                          .iterations_per_sample = random_.Next()};
  for (std::size_t i = Below(20); i > 0; --i) {
    measurement.samples_ns.push_back(Real());
    measurement.sample_flags.push_back(static_cast<std::uint8_t>(Below(256)));
  }
  if (Below(4) == 0) {
    const auto before = static_cast<std::uint32_t>(measurement.samples_ns.size() + 1 + Below(20));
    measurement.thinned = Thinned{.samples_before = before,
                                  .accepted_before = static_cast<std::uint32_t>(Below(before + 1))};
  }
  measurement.clock_before_mhz = Real();
  measurement.clock_after_mhz = Real();
  if (Below(2) == 1) {
    measurement.device = DeviceState{.temperature_c = Real(),
                                     .power_w = Real(),
                                     .memory_clock_mhz = Real(),
                                     .throttle_reasons = random_.Next()};
  }
  return measurement;
}

HardwareFacts RandomMessages::Hardware() {
  return {.device = Pick<DeviceKind>(2),
          .hardware_class = "class " + Text(),
          .model = Text(),
          .isa = Text(),
          .microcode = Text(),
          .clock_mhz = Real(),
          .physical_cores = Number32(),
          .logical_cores = Number32(),
          .l1d_bytes = random_.Next(),
          .l2_bytes = random_.Next(),
          .l3_bytes = random_.Next(),
          .memory_bytes = random_.Next(),
          .peaks = {.flop_per_second = Real(),
                    .read_bytes_per_second = Real(),
                    .triad_bytes_per_second = Real()},
          .host = Text(),
          .kernel = Text()};
}

CompilerFacts RandomMessages::Compiler() {
  return {.llvm = Text(), .tier = Text(), .revision = Text()};
}

Conditions RandomMessages::SomeConditions() {
  return {.hardware = Hardware(),
          .compiler = Compiler(),
          .threads = Number32(),
          .cache = Pick<CacheState>(2),
          .policy = Text(),
          .isolation = Text()};
}

StageDurations RandomMessages::Stages() {
  StageDurations stages;
  for (const Stage stage : kStages) {
    stages[stage] = Nanos(static_cast<std::int64_t>(random_.Next() >> 1));
  }
  return stages;
}

Observed RandomMessages::AnObserved() {
  Observed observed;
  for (std::size_t i = Below(4); i > 0; --i) {
    ObservedValue& value = observed.values[Text(12)];
    switch (Below(4)) {
      case 0: value = static_cast<double>(random_.Next()); break;
      case 1: value = std::vector<double>(Below(5), static_cast<double>(random_.Next())); break;
      case 2: value = Blob{.sha256 = Piece().sha256, .bytes = Below(kMaxBlobBytes) + 1}; break;
      default: value = Text(60);
    }
  }
  return observed;
}

Evaluation RandomMessages::AnEvaluation() {
  Evaluation evaluation;
  switch (Below(3)) {
    case 0: evaluation.verdict = AMeasurement(); break;
    case 1: evaluation.verdict = AFailure(); break;
    default: evaluation.verdict = AnObserved();
  }
  if (Flip()) {
    for (auto& byte : evaluation.subject.emplace().bytes) {
      byte = static_cast<std::uint8_t>(Below(256));
    }
  }
  evaluation.flop_count = random_.Next();
  if (Flip()) evaluation.conditions = SomeConditions();
  evaluation.scratch_bytes = random_.Next();
  evaluation.code_hash = Text();
  for (std::size_t i = Below(3); i > 0; --i) evaluation.notes.push_back(Text(12));
  evaluation.same_code = evaluation.is_timed() && Flip();
  evaluation.stages = Stages();
  return evaluation;
}

Outcome RandomMessages::AnOutcome(BatchId batch) {
  Outcome outcome;
  outcome.job = {.batch = batch, .index = Number32()};
  outcome.sequence = random_.Next();
  outcome.source = Pick<OutcomeSource>(3);
  outcome.attempts = Number32();
  outcome.worker = Text();
  outcome.finished_at = Time();
  outcome.evaluation = AnEvaluation();
  outcome.benchmark = Source();
  outcome.actions = Actions();
  outcome.tag = Text(60);
  return outcome;
}

BatchInfo RandomMessages::Batch() {
  return {.batch = BatchId{Id()},
          .client = AnUuid(),
          .state = Pick<BatchState>(4),
          .submitted_at = Time(),
          .job_count = Number32(),
          .finished = Number32(),
          .failed = Number32(),
          .from_store = Number32()};
}

OutcomePage RandomMessages::Page() {
  OutcomePage page{.batch = Batch(), .outcomes = {}};
  for (std::size_t i = Below(8); i > 0; --i) {
    // Some neighbours share the values that are kept in tables.
    const bool like_before = !page.outcomes.empty() && Flip();
    Outcome outcome = AnOutcome(page.batch.batch);
    if (like_before) {
      outcome.benchmark = page.outcomes.back().benchmark;
      outcome.worker = page.outcomes.back().worker;
      outcome.evaluation.conditions = page.outcomes.back().evaluation.conditions;
    }
    page.outcomes.push_back(std::move(outcome));
  }
  return page;
}

JobInfo RandomMessages::AJobInfo() {
  JobInfo info{.job = Job(),
               .state = Pick<JobState>(3),
               .spec = Spec(),
               .attempts = Number32(),
               .worker = Text(),
               .outcome = {}};
  if (Flip()) {
    info.outcome = AnOutcome(info.job.batch);
    info.outcome->job = info.job;
  }
  return info;
}

WorkerInfo RandomMessages::Worker() {
  return {.worker = AnUuid(),
          .name = Text(),
          .state = Pick<WorkerState>(4),
          .pid = Number32(),
          .slots = Number32(),
          .leased_jobs = Number32(),
          .finished_jobs = random_.Next(),
          .since_heartbeat_ms = Number32(),
          .http = Text(),
          .hardware = Hardware(),
          .compiler = Compiler(),
          .max_threads = Number32(),
          .canary_ratio = Real(),
          .labels = Texts(3),
          .drain = Flip() ? std::optional(Drain{.target = Text(),
                                                .reason = Text(),
                                                .by = Text(),
                                                .since = WallTime(Nanos(Number32()))})
                          : std::nullopt,
          .quarantine = Text(),
          .quarantine_cause = Pick<QuarantineCause>(kQuarantineCauses),
          .quarantined_ms = random_.Next(),
          .outdated = Text(),
          .recent_figures = Number32(),
          .recent_imprecise = Number32()};
}

JobExplanation RandomMessages::Explanation() {
  JobExplanation explanation{.job = Job(),
                             .state = Pick<JobState>(3),
                             .reason = Text(),
                             .priority = static_cast<std::int32_t>(Number32()),
                             .waited_ms = random_.Next(),
                             .attempts = Number32(),
                             .ahead_own = random_.Next(),
                             .ahead_own_is_exact = Flip(),
                             .ahead_others = random_.Next(),
                             .other_clients = Number32(),
                             .affinity_worker = Text(),
                             .unserved_ms = random_.Next(),
                             .unserved_limit_ms = random_.Next(),
                             .more_workers = Number32(),
                             .worker = Text(),
                             .leased_ms = random_.Next()};
  if (Flip()) explanation.deadline_left_ms = random_.Next() >> 1;
  if (Flip()) explanation.follows = Job();
  for (std::size_t i = Below(kMaxExplainedWorkers + 1); i > 0; --i) {
    explanation.workers.push_back({.name = Text(),
                                   .state = Pick<WorkerState>(4),
                                   .connected = Flip(),
                                   .leased_jobs = Number32(),
                                   .credit = Number32(),
                                   .other_device = Flip(),
                                   .max_threads = Number32(),
                                   .missing_labels = Texts(3),
                                   .other_affinity = Flip(),
                                   .quarantine = Text()});
  }
  if (Flip()) {
    explanation.outcome = AnOutcome(explanation.job.batch);
    explanation.outcome->job = explanation.job;
  }
  return explanation;
}

SubmitJobs RandomMessages::Submit() {
  SubmitJobs submit;
  submit.request_id = AnUuid();
  if (Flip()) submit.append_to = BatchId{Id()};
  submit.end = Pick<BatchEnd>(2);
  for (std::size_t i = Below(6); i > 0; --i) submit.jobs.push_back(Spec());
  return submit;
}

std::vector<LeaseId> RandomMessages::LeaseIds() {
  std::vector<LeaseId> ids(Below(9));
  for (LeaseId& id : ids) id = LeaseId{Id()};
  return ids;
}

WorkerHello RandomMessages::Hello() {
  WorkerHello hello{.version = Version(),
                    .worker = AnUuid(),
                    .name = Text(),
                    .pid = Number32(),
                    .slots = static_cast<std::uint32_t>(Below(64) + 1),
                    .credit = static_cast<std::uint32_t>(Below(kMaxLeasesPerMessage) + 1),
                    .http = Text(),
                    .hardware = Hardware(),
                    .compiler = Compiler(),
                    .policy = Text(),
                    .isolation = Text(),
                    .max_threads = static_cast<std::uint32_t>(Below(64) + 1),
                    .labels = Texts(3),
                    .held = {},
                    .capabilities = Texts(3)};
  for (const LeaseId lease : LeaseIds()) hello.held.push_back({.lease = lease, .job = Job()});
  return hello;
}

BlobPiece RandomMessages::Piece() {
  BlobPiece piece{.sha256 = {}, .total = 0, .offset = Below(1'000'000), .bytes = Text()};
  while (piece.sha256.size() < 64) piece.sha256 += "0123456789abcdef"[Below(16)];
  piece.total = piece.offset + piece.bytes.size() + Below(1'000);
  return piece;
}

ClientRequest RandomMessages::Request(std::size_t kind) {
  const auto message = [&]() -> ClientMessage {
    switch (kind) {
      case 0:
        return ClientHello{
            .version = Version(), .client = AnUuid(), .program = Text(), .capabilities = Texts(3)};
      case 1: return Submit();
      case 2:
        return FetchOutcomes{
            .batch = BatchId{Id()},
            .after_sequence = random_.Next(),
            .max_outcomes = static_cast<std::uint32_t>(Below(kMaxOutcomesPerPage) + 1),
            .wait_ms = Number32()};
      case 3: return CancelBatch{.batch = BatchId{Id()}};
      case 4:
        return ListBatches{.max_batches =
                               static_cast<std::uint32_t>(Below(kMaxBatchesPerList + 1))};
      case 5: return ShowBatch{.batch = BatchId{Flip() ? Id() : 0}};
      case 6: return ShowJob{.job = Job()};
      case 7: return ListWorkers{};
      case 8: return ExplainJob{.job = Job()};
      case 9:
        return SetDrain{.target = "a host",
                        .wish = Flip() ? DrainAction::kDrain : DrainAction::kResume,
                        .reason = Text(),
                        .by = Text()};
      case 10:
        return ListOutcomes{
            .after = {.batch = BatchId{Id()}, .sequence = random_.Next()},
            .max_outcomes = static_cast<std::uint32_t>(Below(kMaxOutcomesPerPage) + 1),
            .benchmark_prefix = Text()};
      case 11:
        return ShowFleet{.after_event = random_.Next(),
                         .max_events = static_cast<std::uint32_t>(Below(kMaxEventsPerList + 1))};
      case 12: {
        FlagResults flag{.reason = Text()};
        for (std::uint64_t i = 0; i <= Below(3); ++i) flag.jobs.push_back(Job());
        return flag;
      }
      case 13:
        return FindBest{.job = Spec(),
                        .hardware_class = Text(),
                        .max_jobs = static_cast<std::uint32_t>(Below(kMaxBestJobs) + 1)};
      case 14: {
        BlobPiece piece = Piece();
        piece.total = std::max<std::uint64_t>(piece.total, 1);
        return piece;
      }
      case 15: return BlobWanted{.sha256 = Piece().sha256, .offset = Below(kMaxBlobBytes + 1)};
      default: LF_CHECK(false, "no request of kind {}", kind);
    }
  }();
  return {.number = random_.Next(), .message = message};
}

FleetInfo RandomMessages::Fleet() {
  FleetInfo fleet{.epoch = random_.Next(),
                  .started_at = Batch().submitted_at,
                  .now = Batch().submitted_at,
                  .version = Text(),
                  .http = Text(),
                  .queued_cpu = random_.Next(),
                  .queued_cuda = random_.Next(),
                  .queued_any = random_.Next(),
                  .leased_jobs = random_.Next(),
                  .accepted_jobs = random_.Next(),
                  .finished_jobs = random_.Next(),
                  .failed_jobs = random_.Next(),
                  .shared_jobs = random_.Next(),
                  .workers_ready = Number32(),
                  .workers_draining = Number32(),
                  .workers_lost = Number32(),
                  .workers_quarantined = Number32(),
                  .storage_full = Flip(),
                  .stopping = Flip(),
                  .last_event = random_.Next()};
  fleet.health.sentence = Text();
  for (std::size_t i = Below(4); i > 0; --i) {
    fleet.health.attention.push_back({.kind = "workers_lost",
                                      .severity = Pick<Severity>(3),
                                      .count = random_.Next(),
                                      .sentence = Text()});
  }
  if (Flip()) fleet.oldest_queued_at = WallTime(Nanos(Below(1'000'000'000) + 1));
  for (std::size_t i = Below(4); i > 0; --i) {
    fleet.failures.push_back({.code = "RUN_CRASH", .count = random_.Next()});
  }
  for (std::size_t i = Below(5); i > 0; --i) {
    FleetEvent event{.sequence = random_.Next(),
                     .at = Batch().submitted_at,
                     .kind = "worker.joined",
                     .subject = Text(),
                     .count = random_.Next(),
                     .text = Text()};
    if (Flip()) event.batch = BatchId{Id()};
    fleet.events.push_back(std::move(event));
  }
  return fleet;
}

CoordinatorReply RandomMessages::Reply(std::size_t kind) {
  const auto message = [&]() -> CoordinatorMessage {
    switch (kind) {
      case 0:
        return Welcome{.version = Version(),
                       .coordinator = Text(),
                       .epoch = random_.Next(),
                       .capabilities = Texts(3),
                       .incarnation = AnUuid()};
      case 1:
        return Accepted{.batch = BatchId{Id()}, .first_index = Number32(), .job_count = Number32()};
      case 2: return Refused{.failure = AFailure(), .retry_after_ms = Number32()};
      case 3: return Page();
      case 4: {
        BatchList list;
        for (std::size_t i = Below(5); i > 0; --i) list.batches.push_back(Batch());
        return list;
      }
      case 5: return Batch();
      case 6: return AJobInfo();
      case 7: {
        WorkerList list;
        for (std::size_t i = Below(5); i > 0; --i) list.workers.push_back(Worker());
        return list;
      }
      case 8: return Explanation();
      case 9: {
        OutcomeList list{.outcomes = Page().outcomes,
                         .next = {.batch = BatchId{Id()}, .sequence = random_.Next()},
                         .is_end = Flip()};
        for (Outcome& outcome : list.outcomes) outcome.job.batch = BatchId{Id()};
        return list;
      }
      case 10: return Fleet();
      case 11: {
        JobList list;
        for (std::size_t i = Below(5); i > 0; --i) list.jobs.push_back(AJobInfo());
        return list;
      }
      case 12: return BlobHeld{.bytes = random_.Next()};
      case 13: return Piece();
      default: LF_CHECK(false, "no reply of kind {}", kind);
    }
  }();
  return {.number = random_.Next(), .message = message};
}

WorkerMessage RandomMessages::Message(std::size_t kind) {
  switch (kind) {
    case 0: return Hello();
    case 1:
      return Heartbeat{.drain = Pick<DrainState>(2),
                       .held = LeaseIds(),
                       .canary_ratio = Real(),
                       .canary = Pick<CanaryState>(2),
                       .steady_since_ms = random_.Next(),
                       .drifting = Flip() ? std::optional(Pick<Canary>(kCanaries)) : std::nullopt};
    case 2: {
      Reports reports;
      for (const LeaseId lease : LeaseIds()) {
        reports.reports.push_back({.lease = lease, .job = Job(), .evaluation = AnEvaluation()});
      }
      return reports;
    }
    case 3: return Goodbye{.returned = LeaseIds()};
    case 4: return Returned{.leases = LeaseIds()};
    case 5: return CodeLookup{.lease = LeaseId{random_.Next() | 1}, .code_hash = Text() + "0"};
    case 6: return BlobWanted{.sha256 = Piece().sha256, .offset = Below(kMaxBlobBytes + 1)};
    case 7: {
      BlobPiece piece = Piece();
      piece.total = std::max<std::uint64_t>(piece.total, 1);
      return piece;
    }
    default: LF_CHECK(false, "no worker message of kind {}", kind);
  }
}

WorkerCommand RandomMessages::Command(std::size_t kind) {
  switch (kind) {
    case 0:
      return WorkerWelcome{.version = Version(),
                           .epoch = random_.Next(),
                           .heartbeat_ms = static_cast<std::uint32_t>(Below(10'000) + 1),
                           .capabilities = Texts(3),
                           .reference_mhz = Real()};
    case 1: {
      Leases leases;
      for (const LeaseId lease : LeaseIds()) {
        leases.leases.push_back(
            {.lease = lease, .job = Job(), .attempt = Number32(), .spec = Spec()});
      }
      return leases;
    }
    case 2: return ReportsStored{.leases = LeaseIds()};
    case 3: return Revoke{.leases = LeaseIds()};
    case 4: return HeartbeatAnswer{};
    case 5: return HelloWanted{};
    case 6: return Refused{.failure = AFailure(), .retry_after_ms = Number32()};
    case 7: return GiveBack{.leases = LeaseIds()};
    case 8: {
      CodeLookupAnswer answer{.lease = LeaseId{random_.Next() | 1}};
      if (Flip()) {
        do {
          answer.found = AnEvaluation();
        } while (!answer.found->is_timed());
      }
      return answer;
    }
    case 9: return Piece();
    case 10:
      return WorkerBlobHeld{.sha256 = Piece().sha256,
                            .bytes = Below(kMaxBlobBytes + 1),
                            .failure = Flip() ? std::optional(AFailure()) : std::nullopt};
    default: LF_CHECK(false, "no worker command of kind {}", kind);
  }
}

}  // namespace loopfleet::wire
