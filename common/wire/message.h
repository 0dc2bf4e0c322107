#pragma once
// The messages of the protocol, as values. docs/PROTOCOL.md describes the exchanges, schema/*.capnp
// defines the bytes, and codec.h converts between values and bytes.
//
// Clients and the coordinator: a client numbers its requests, and each is answered by exactly one
// reply of the same number. Outcomes are pulled: FetchOutcomes waits at the coordinator for
// outcomes after `after_sequence`. So outcomes arrive as they finish, a slow client delays no
// other, and a lost message is requested again.
//
// Workers and the coordinator: a worker sends a hello, is granted leases up to its credit, reports
// an evaluation for each, and keeps it until the coordinator acknowledges that it is on disk.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"
#include "common/job/quarantine.h"
#include "common/wire/bounds.h"

namespace loopfleet::wire {

// A peer of another major version is refused (VERSION_MISMATCH). A higher minor version only adds.
struct ProtocolVersion {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  friend auto operator<=>(const ProtocolVersion&, const ProtocolVersion&) = default;
};
// 1.1: JobSpec::min_grade. 1.2: JobSpec::profile. 1.3: bitcode:// from the coordinator. 1.4: Blob.
inline constexpr ProtocolVersion kProtocolVersion{.major = 1, .minor = 4};

// The lowest minor version whose workers understand everything that this job uses. A worker of an
// older one would pass over the field, and measure something else. A new field or action that
// changes what a job means is added here.
constexpr std::uint16_t MinorVersionFor(const JobSpec& spec) {
  const auto* benchmark = std::get_if<looptree::BenchmarkUri>(&spec.source);
  if (benchmark != nullptr && benchmark->text.starts_with("bitcode://")) return 3;
  if (spec.profile != ProfileLevel::kNone) return 2;
  return spec.min_grade == Grade::kD ? 0 : 1;
}

// ---- client -> coordinator ----------------------------------------------------------------------

struct ClientHello {
  ProtocolVersion version = kProtocolVersion;
  Uuid client;  // the same across reconnects: (client, request id) makes submitting idempotent
  std::string program;                    // "loopfleet 0.1.0", for the log
  std::vector<std::string> capabilities;  // supported optional features; unknown names are ignored
  friend bool operator==(const ClientHello&, const ClientHello&) = default;
};

enum class BatchEnd : std::uint8_t { kMoreFollows, kComplete };

// Adds jobs to a new batch, or to an open batch of this client.
struct SubmitJobs {
  Uuid request_id;  // chosen by the client; unchanged when the request is sent again
  std::optional<BatchId> append_to;
  BatchEnd end = BatchEnd::kComplete;  // whether more jobs will be appended
  std::vector<JobSpec> jobs;           // at most kMaxJobsPerMessage; may be empty to end a batch
  friend bool operator==(const SubmitJobs&, const SubmitJobs&) = default;
};

struct FetchOutcomes {
  BatchId batch;
  std::uint64_t after_sequence = 0;
  std::uint32_t max_outcomes = kMaxOutcomesPerPage;
  std::uint32_t wait_ms = 0;  // how long to wait for the first outcome; then the reply is empty
  friend bool operator==(const FetchOutcomes&, const FetchOutcomes&) = default;
};

struct CancelBatch {
  BatchId batch;
  friend bool operator==(const CancelBatch&, const CancelBatch&) = default;
};
struct ListBatches {
  std::uint32_t max_batches = 100;  // the newest ones, and unfinished ones for up to half of them
  friend bool operator==(const ListBatches&, const ListBatches&) = default;
};
struct ShowBatch {
  BatchId batch;  // none (0): the newest that a client sent
  friend bool operator==(const ShowBatch&, const ShowBatch&) = default;
};
struct ShowJob {
  JobId job;
  friend bool operator==(const ShowJob&, const ShowJob&) = default;
};
// Asks why the job is in its present state.
struct ExplainJob {
  JobId job;
  friend bool operator==(const ExplainJob&, const ExplainJob&) = default;
};

enum class DrainAction : std::uint8_t { kDrain, kResume };

// Answered with a WorkerList: the affected workers in their new state.
struct SetDrain {
  std::string target;  // host name, worker name or full worker id
  DrainAction wish = DrainAction::kDrain;
  std::string reason;  // for people
  std::string by;      // the operator, for people
  friend bool operator==(const SetDrain&, const SetDrain&) = default;
};

struct ListOutcomes {
  OutcomePlace after;
  std::uint32_t max_outcomes = kMaxOutcomesPerPage;
  std::string benchmark_prefix;  // only benchmarks whose URI starts with it
  friend bool operator==(const ListOutcomes&, const ListOutcomes&) = default;
};
struct ListWorkers {
  friend bool operator==(const ListWorkers&, const ListWorkers&) = default;
};

// Asks for the fleet's state and the events after `after_event`. Answered with a FleetInfo.
struct ShowFleet {
  std::uint64_t after_event = 0;
  std::uint32_t max_events = 100;  // 0: none; at most kMaxEventsPerList
  friend bool operator==(const ShowFleet&, const ShowFleet&) = default;
};

// Flags the stored results and failures of these jobs: they answer no later job. Answered with
// Accepted (batch and index of the first job, and their number) once the flags are on disk.
struct FlagResults {
  std::vector<JobId> jobs;  // 1 to kMaxFlagsPerMessage; a job that stored nothing is skipped
  std::string reason;       // for people
  friend bool operator==(const FlagResults&, const FlagResults&) = default;
};

// Asks for the fastest known schedules of the program that `job` is about. Answered with a JobList,
// the fastest first: each with the job that measured it, whose batch may have been pruned, and its
// outcome.
struct FindBest {
  JobSpec job;  // its benchmark, dialect, device, threads and cache count, and nothing else
  std::string hardware_class;  // of the workers that measured them; "": any
  std::uint32_t max_jobs = 1;  // 1 to kMaxBestJobs
  friend bool operator==(const FindBest&, const FindBest&) = default;
};

// A piece of a blob (a program's bitcode, or an observed value), named by the SHA-256 of all its
// bytes. To the coordinator: answered with BlobHeld or WorkerBlobHeld. From it: the answer to a
// BlobWanted.
struct BlobPiece {
  std::string sha256;        // 64 lower-case hexadecimal digits
  std::uint64_t total = 0;   // at most kMaxBlobBytes. 0, from the coordinator only: no such blob
  std::uint64_t offset = 0;  // of this piece
  std::string bytes;         // at most kMaxBlobPieceBytes; "": how much is held?
  friend bool operator==(const BlobPiece&, const BlobPiece&) = default;
};

// Asks for a blob, from this offset on. Answered with a BlobPiece. A worker sends it only to
// coordinators with kBlobCapability.
struct BlobWanted {
  std::string sha256;
  std::uint64_t offset = 0;
  friend bool operator==(const BlobWanted&, const BlobWanted&) = default;
};

// A union member that this version does not know. Answered with UNSUPPORTED, never ignored.
struct UnknownMember {
  std::uint16_t member = 0;
  friend bool operator==(const UnknownMember&, const UnknownMember&) = default;
};

using ClientMessage =
    std::variant<ClientHello, SubmitJobs, FetchOutcomes, CancelBatch, ListBatches, ShowBatch,
                 ShowJob, ListWorkers, ExplainJob, SetDrain, ListOutcomes, ShowFleet, FlagResults,
                 FindBest, BlobPiece, BlobWanted, UnknownMember>;

struct ClientRequest {
  std::uint64_t number = 0;
  ClientMessage message;
  friend bool operator==(const ClientRequest&, const ClientRequest&) = default;
};

// ---- coordinator -> client ----------------------------------------------------------------------

struct Welcome {
  ProtocolVersion version = kProtocolVersion;
  std::string coordinator;                // its name, for people
  std::uint64_t epoch = 0;                // number of its starts on this database
  std::vector<std::string> capabilities;  // as in ClientHello
  // Names its database; another one after a snapshot was restored. Nil: an older coordinator.
  Uuid incarnation;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The jobs are on disk.
struct Accepted {
  BatchId batch;
  std::uint32_t first_index = 0;  // index in the batch of this message's first job
  std::uint32_t job_count = 0;    // jobs of this message
  friend bool operator==(const Accepted&, const Accepted&) = default;
};

// The request had no effect.
struct Refused {
  Failure failure;
  std::uint32_t retry_after_ms = 0;  // for retryable codes
  friend bool operator==(const Refused&, const Refused&) = default;
};

enum class BatchState : std::uint8_t { kOpen, kRunning, kFinished, kCancelled };

struct BatchInfo {
  BatchId batch;
  Uuid client;
  BatchState state = BatchState::kOpen;
  WallTime submitted_at{};
  std::uint32_t job_count = 0;
  std::uint32_t finished = 0;    // jobs with an outcome
  std::uint32_t failed = 0;      // of those, without a measurement
  std::uint32_t from_store = 0;  // of those, answered from the store
  friend bool operator==(const BatchInfo&, const BatchInfo&) = default;
};

struct OutcomePage {
  BatchInfo batch;
  std::vector<Outcome> outcomes;  // in the order of their sequence, without gaps
  friend bool operator==(const OutcomePage&, const OutcomePage&) = default;
};

struct BatchList {
  std::vector<BatchInfo> batches;  // newest first
  friend bool operator==(const BatchList&, const BatchList&) = default;
};

enum class JobState : std::uint8_t { kQueued, kLeased, kFinished };

struct JobInfo {
  JobId job;
  JobState state = JobState::kQueued;
  JobSpec spec;
  std::uint32_t attempts = 0;
  std::string worker;              // the worker that holds or measured it; "": none
  std::optional<Outcome> outcome;  // if kFinished
  friend bool operator==(const JobInfo&, const JobInfo&) = default;
};

struct JobList {
  std::vector<JobInfo> jobs;
  friend bool operator==(const JobList&, const JobList&) = default;
};

enum class WorkerState : std::uint8_t {
  kReady,
  kDraining,
  kLost,
  kQuarantined,  // its figures are in doubt: it gets only jobs that no other worker could run
};

// An operator's order that workers take no new jobs.
struct Drain {
  std::string target;
  std::string reason;
  std::string by;
  WallTime since{};
  friend bool operator==(const Drain&, const Drain&) = default;
};

struct WorkerInfo {
  Uuid worker;
  std::string name;
  WorkerState state = WorkerState::kReady;
  std::uint32_t pid = 0;
  std::uint32_t slots = 1;
  std::uint32_t leased_jobs = 0;
  std::uint64_t finished_jobs = 0;  // since its hello
  std::uint32_t since_heartbeat_ms = 0;
  std::string http;  // HOST:PORT of its metrics; "" if it serves none
  HardwareFacts hardware;
  CompilerFacts compiler;
  std::uint32_t max_threads = 1;    // the most that a kernel may use there
  double canary_ratio = 0;          // canary time now over that at its start; 0: not measured
  std::vector<std::string> labels;  // that jobs may demand, those from its hardware included
  std::optional<Drain> drain;       // ordered by an operator
  std::string quarantine;           // why it is in quarantine, for people; "": it is not
  QuarantineCause quarantine_cause = QuarantineCause::kNone;
  std::uint64_t quarantined_ms = 0;     // time in quarantine; 0: it is not
  std::vector<std::string> hindrances;  // as in WorkerHello
  std::string outdated;  // what it lacks of this coordinator's version, for people; "": nothing
  std::uint32_t recent_figures = 0;    // its newest ones, at most 32
  std::uint32_t recent_imprecise = 0;  // of these, with grade C or D
  friend bool operator==(const WorkerInfo&, const WorkerInfo&) = default;
};

struct WorkerList {
  std::vector<WorkerInfo> workers;
  friend bool operator==(const WorkerList&, const WorkerList&) = default;
};

// How well one worker fits a waiting job.
struct WorkerFit {
  std::string name;
  WorkerState state = WorkerState::kReady;
  bool connected = true;
  std::uint32_t leased_jobs = 0;
  std::uint32_t credit = 1;  // leases it takes at once
  // What the job demands and the worker lacks. A worker that lacks nothing matches.
  bool other_device = false;
  std::uint32_t max_threads = 0;  // its maximum, if the job needs more; else 0
  std::vector<std::string> missing_labels;
  bool other_affinity = false;  // the job's affinity is bound to another worker
  std::string quarantine;       // as in WorkerInfo

  bool matches() const {
    return !other_device && max_threads == 0 && missing_labels.empty() && !other_affinity;
  }
  friend bool operator==(const WorkerFit&, const WorkerFit&) = default;
};

// What a job waits for, which worker holds it, or how it ended.
struct JobExplanation {
  JobId job;
  JobState state = JobState::kQueued;
  std::string reason;  // a summary in a sentence or two, for people
  std::int32_t priority = 0;
  std::uint64_t waited_ms = 0;  // since acceptance; without a deadline, since the last restart
  std::optional<std::uint64_t> deadline_left_ms;
  std::uint32_t attempts = 0;  // leases so far, the current one included
  // If kQueued. Counts are of jobs with the same demand that are served before it.
  std::uint64_t ahead_own = 0;  // of the same client; a lower bound if not exact
  bool ahead_own_is_exact = true;
  std::uint64_t ahead_others = 0;       // of other clients, if all jobs take equally long
  std::uint32_t other_clients = 0;      // clients that have such jobs
  std::optional<JobId> follows;         // an equal job under way, whose outcome it will share
  std::string affinity_worker;          // name of the worker its affinity is bound to; "": none
  std::uint64_t unserved_ms = 0;        // time without a matching worker
  std::uint64_t unserved_limit_ms = 0;  // after this it ends with NO_MATCHING_WORKER
  std::vector<WorkerFit> workers;       // best fit first; at most kMaxExplainedWorkers
  std::uint32_t more_workers = 0;       // not listed in `workers`
  // If kLeased.
  std::string worker;
  std::uint64_t leased_ms = 0;
  std::optional<Outcome> outcome;  // if kFinished
  friend bool operator==(const JobExplanation&, const JobExplanation&) = default;
};

struct OutcomeList {
  std::vector<Outcome> outcomes;  // by batch and sequence
  OutcomePlace next;    // continue after this; beyond the last outcome if rows were skipped
  bool is_end = false;  // nothing follows `next` at present
  friend bool operator==(const OutcomeList&, const OutcomeList&) = default;
};

// Something that happened to the fleet.
struct FleetEvent {
  std::uint64_t sequence = 0;  // ascending; gaps are events that are no longer kept
  WallTime at{};
  std::string kind;     // "worker.joined"; a reader must accept unknown kinds
  std::string subject;  // a worker's name; "": none
  std::optional<BatchId> batch;
  std::uint64_t count = 0;  // jobs or leases, depending on the kind
  std::string text;         // for people
  friend bool operator==(const FleetEvent&, const FleetEvent&) = default;
};

struct FailureCount {
  std::string code;  // name of the failure code
  std::uint64_t count = 0;
  friend bool operator==(const FailureCount&, const FailureCount&) = default;
};

enum class Severity : std::uint8_t {
  kNotice,   // for information
  kWarning,  // something does not work as it should
  kProblem,  // jobs are not accepted, not run, or their figures are in doubt
};

// One thing about the fleet that needs attention.
struct Attention {
  std::string
      kind;  // "workers_lost" (common/fleet/attention.h); a reader must accept unknown kinds
  Severity severity = Severity::kNotice;
  std::uint64_t count = 0;  // workers or jobs, depending on the kind
  std::string sentence;     // for people
  friend bool operator==(const Attention&, const Attention&) = default;
};

struct FleetHealth {
  std::string sentence;              // the worst, or that all is well; "": an older coordinator
  std::vector<Attention> attention;  // the worst first; at most kMaxAttention
  Severity level() const { return attention.empty() ? Severity::kNotice : attention[0].severity; }
  friend bool operator==(const FleetHealth&, const FleetHealth&) = default;
};

// The fleet's state. Counts start at 0 with each start of the coordinator.
struct FleetInfo {
  std::uint64_t epoch = 0;  // when it changes, all counts and events have started over
  WallTime started_at{};
  WallTime now{};
  std::string version;           // of the coordinator
  std::string http;              // HOST:PORT of its /metrics; "": not known
  std::uint64_t queued_cpu = 0;  // jobs waiting for a worker, by requested device
  std::uint64_t queued_cuda = 0;
  std::uint64_t queued_any = 0;
  std::uint64_t leased_jobs = 0;
  std::optional<WallTime> oldest_queued_at;  // approximate time of its acceptance
  std::uint64_t accepted_jobs = 0;
  std::uint64_t finished_jobs = 0;  // with an outcome
  std::uint64_t failed_jobs = 0;    // of those, without a measurement
  // Of the finished ones: answered from the store, or with an equal job's outcome.
  std::uint64_t shared_jobs = 0;
  std::uint32_t workers_ready = 0;
  std::uint32_t workers_draining = 0;
  std::uint32_t workers_lost = 0;
  std::uint32_t workers_quarantined = 0;
  bool storage_full = false;
  bool stopping = false;
  std::vector<FailureCount> failures;  // counts above 0 only
  std::uint64_t last_event = 0;        // sequence of the newest event; 0: none yet
  std::vector<FleetEvent> events;      // by ascending sequence
  FleetHealth health;
  friend bool operator==(const FleetInfo&, const FleetInfo&) = default;
};

// How much of a blob is held, from its first byte on: the next piece starts there. All of it:
// its hash is right, and it is on disk.
struct BlobHeld {
  std::uint64_t bytes = 0;
  friend bool operator==(const BlobHeld&, const BlobHeld&) = default;
};

using CoordinatorMessage = std::variant<Welcome, Accepted, Refused, OutcomePage, BatchList,
                                        BatchInfo, JobInfo, WorkerList, JobExplanation, OutcomeList,
                                        FleetInfo, JobList, BlobHeld, BlobPiece, UnknownMember>;

struct CoordinatorReply {
  std::uint64_t number = 0;  // of the request; 0: the request's number could not be read
  CoordinatorMessage message;
  friend bool operator==(const CoordinatorReply&, const CoordinatorReply&) = default;
};

// ---- worker -> coordinator ----------------------------------------------------------------------

struct HeldLease {
  LeaseId lease;
  JobId job;
  friend bool operator==(const HeldLease&, const HeldLease&) = default;
};

struct WorkerHello {
  ProtocolVersion version = kProtocolVersion;
  Uuid worker;       // identifies the daemon process: a restarted worker has a new id
  std::string name;  // host and pid, in a container also the start of its id
  std::uint32_t pid = 0;
  std::uint32_t slots = 1;   // kernels it times at once
  std::uint32_t credit = 1;  // leases it holds at once: timed and prepared ahead
  std::string http;
  HardwareFacts hardware;
  CompilerFacts compiler;
  std::string policy;               // Conditions::policy of its measurements
  std::string isolation = {};       // Conditions::isolation of them; "": an older worker
  std::uint32_t max_threads = 1;    // the most that a kernel may use here
  std::vector<std::string> labels;  // given by hand; at most kMaxLabels
  // Conditions that may degrade its measurements, for people; at most kMaxHindrances.
  std::vector<std::string> hindrances;
  std::vector<HeldLease> held;            // leases it still holds after a reconnect
  std::vector<std::string> capabilities;  // as in ClientHello
  friend bool operator==(const WorkerHello&, const WorkerHello&) = default;
};

enum class DrainState : std::uint8_t { kServing, kDraining };

// Whether the canary kernels still take as long as when the worker started.
enum class CanaryState : std::uint8_t { kSteady, kDrifting };

struct Heartbeat {
  DrainState drain = DrainState::kServing;  // kDraining: grant nothing more
  std::vector<LeaseId> held;
  double canary_ratio = 0;  // canary time now over that at its start; 0: not measured
  CanaryState canary = CanaryState::kSteady;
  std::uint64_t steady_since_ms = 0;  // time since its canaries were last measured as steady
  // The canary that drifts most; none: all are steady, or the worker does not say which.
  std::optional<Canary> drifting;
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

struct Report {
  LeaseId lease;
  JobId job;
  Evaluation evaluation;
  friend bool operator==(const Report&, const Report&) = default;
};

struct Reports {
  std::vector<Report> reports;
  friend bool operator==(const Reports&, const Reports&) = default;
};

// The last message of a worker that leaves: returns its leases unrun.
struct Goodbye {
  std::vector<LeaseId> returned;
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// Leases returned unrun: in answer to GiveBack, or by a worker that drains.
struct Returned {
  std::vector<LeaseId> leases;
  friend bool operator==(const Returned&, const Returned&) = default;
};

// Asks whether the store has a figure of this machine code, so that the job need not be timed.
// Answered with CodeLookupAnswer. Sent only to coordinators with kCodeLookupCapability.
struct CodeLookup {
  LeaseId lease;          // under which the code was compiled
  std::string code_hash;  // Evaluation::code_hash; 1 to kMaxCodeHashBytes
  friend bool operator==(const CodeLookup&, const CodeLookup&) = default;
};
inline constexpr std::string_view kCodeLookupCapability = "code-lookup";

inline constexpr std::string_view kBlobCapability = "blobs";        // answers a BlobWanted
inline constexpr std::string_view kPutBlobCapability = "put-blob";  // answers a worker's BlobPiece

using WorkerMessage = std::variant<WorkerHello, Heartbeat, Reports, Goodbye, Returned, CodeLookup,
                                   BlobWanted, BlobPiece, UnknownMember>;

// ---- coordinator -> worker ----------------------------------------------------------------------

struct WorkerWelcome {
  ProtocolVersion version = kProtocolVersion;
  std::uint64_t epoch = 0;
  std::uint32_t heartbeat_ms = 1000;      // interval of the worker's heartbeats
  std::vector<std::string> capabilities;  // as in ClientHello
  double reference_mhz = 0;  // reference clock of the worker's hardware class; 0: the worker's own
  friend bool operator==(const WorkerWelcome&, const WorkerWelcome&) = default;
};

struct Lease {
  LeaseId lease;
  JobId job;
  std::uint32_t attempt = 1;
  JobSpec spec;
  friend bool operator==(const Lease&, const Lease&) = default;
};

// A lease whose job this version cannot read. Made only by decoding; encoding ignores it.
struct UnreadableLease {
  LeaseId lease;
  JobId job;
  Failure failure;  // why
  friend bool operator==(const UnreadableLease&, const UnreadableLease&) = default;
};

struct Leases {
  std::vector<Lease> leases;
  std::vector<UnreadableLease> unreadable = {};
  friend bool operator==(const Leases&, const Leases&) = default;
};

// The reports under these leases are on disk or no longer wanted: the worker forgets them.
struct ReportsStored {
  std::vector<LeaseId> leases;
  friend bool operator==(const ReportsStored&, const ReportsStored&) = default;
};

// The worker drops those of these leases that have not run yet. No report is wanted for any.
struct Revoke {
  std::vector<LeaseId> leases;
  friend bool operator==(const Revoke&, const Revoke&) = default;
};

// Asks for those of these leases that have not started (answered with Returned), because another
// worker has time for them or this one is drained. Sent only to workers with kGiveBackCapability.
struct GiveBack {
  std::vector<LeaseId> leases;
  friend bool operator==(const GiveBack&, const GiveBack&) = default;
};
inline constexpr std::string_view kGiveBackCapability = "give-back";
// The worker confirms a lease whose attempt is above 1 with an immediate heartbeat.
inline constexpr std::string_view kAnnounceCapability = "announce";

struct HeartbeatAnswer {
  friend bool operator==(const HeartbeatAnswer&, const HeartbeatAnswer&) = default;
};

// The coordinator does not know this peer, because it restarted or gave the worker up. The worker
// sends a new hello.
struct HelloWanted {
  friend bool operator==(const HelloWanted&, const HelloWanted&) = default;
};

// The answer to a CodeLookup: the newest stored measurement of grade A or B with the same machine
// code, hardware class, compiler, policy, threads and cache state, if it is trusted, has all its
// samples, and is as good and as new as the job asks for. An older one is not considered.
struct CodeLookupAnswer {
  LeaseId lease;
  std::optional<Evaluation> found;  // always with a measurement
  friend bool operator==(const CodeLookupAnswer&, const CodeLookupAnswer&) = default;
};

// BlobHeld, to a worker.
struct WorkerBlobHeld {
  std::string sha256;
  std::uint64_t bytes = 0;
  std::optional<Failure> failure = {};  // it cannot be kept
  friend bool operator==(const WorkerBlobHeld&, const WorkerBlobHeld&) = default;
};

using WorkerCommand =
    std::variant<WorkerWelcome, Leases, ReportsStored, Revoke, HeartbeatAnswer, HelloWanted,
                 Refused, GiveBack, CodeLookupAnswer, BlobPiece, WorkerBlobHeld, UnknownMember>;

}  // namespace loopfleet::wire
