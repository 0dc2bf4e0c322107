#pragma once
// The messages of the protocol, as values. docs/PROTOCOL.md tells the story; schema/*.capnp is the
// contract of the bytes; codec.h goes between the two.
//
// Clients and the coordinator: requests numbered by the client, each answered by exactly one reply
// of the same number. Outcomes are pulled: FetchOutcomes waits at the coordinator until there is
// something after `after_sequence`, so outcomes arrive as they finish, a slow client holds up
// nobody, and a lost message is asked for again.
//
// Workers and the coordinator: a worker says hello, is granted leases up to its credit, reports an
// evaluation for each, and keeps it until it is acknowledged (which is after it is on disk).

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

// Peers of another major version are refused (VERSION_MISMATCH); a higher minor one only adds.
struct ProtocolVersion {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  friend auto operator<=>(const ProtocolVersion&, const ProtocolVersion&) = default;
};
inline constexpr ProtocolVersion kProtocolVersion{.major = 1, .minor = 0};

// ---- client -> coordinator ----------------------------------------------------------------------

struct ClientHello {
  ProtocolVersion version = kProtocolVersion;
  Uuid client;  // the same over reconnects: (client, request id) makes submitting idempotent
  std::string program;                    // "loopfleet 0.1.0", for the log
  std::vector<std::string> capabilities;  // optional features it knows; unknown names mean nothing
  friend bool operator==(const ClientHello&, const ClientHello&) = default;
};

enum class BatchEnd : std::uint8_t { kMoreFollows, kComplete };

// Adds jobs to a new batch, or to one of this client's that is still open.
struct SubmitJobs {
  Uuid request_id;  // chosen by the client; sent again unchanged after a silence
  std::optional<BatchId> append_to;
  BatchEnd end = BatchEnd::kComplete;  // whether more jobs will be appended
  std::vector<JobSpec> jobs;           // at most kMaxJobsPerMessage; may be empty to end a batch
  friend bool operator==(const SubmitJobs&, const SubmitJobs&) = default;
};

struct FetchOutcomes {
  BatchId batch;
  std::uint64_t after_sequence = 0;
  std::uint32_t max_outcomes = kMaxOutcomesPerPage;
  std::uint32_t wait_ms = 0;  // how long to wait for a first one; the reply may then be empty
  friend bool operator==(const FetchOutcomes&, const FetchOutcomes&) = default;
};

struct CancelBatch {
  BatchId batch;
  friend bool operator==(const CancelBatch&, const CancelBatch&) = default;
};
struct ListBatches {
  std::uint32_t max_batches = 100;  // the newest ones
  friend bool operator==(const ListBatches&, const ListBatches&) = default;
};
struct ShowBatch {
  BatchId batch;  // "none" is the newest that a client sent
  friend bool operator==(const ShowBatch&, const ShowBatch&) = default;
};
struct ShowJob {
  JobId job;
  friend bool operator==(const ShowJob&, const ShowJob&) = default;
};
// Why the job is where it is, right now.
struct ExplainJob {
  JobId job;
  friend bool operator==(const ExplainJob&, const ExplainJob&) = default;
};

enum class DrainWish : std::uint8_t { kDrain, kResume };

// Answered with a WorkerList: those that it concerns, as they are then.
struct SetDrain {
  std::string target;  // a host's name, or a worker's name or whole id
  DrainWish wish = DrainWish::kDrain;
  std::string reason;  // for people
  std::string by;      // who says so, for people
  friend bool operator==(const SetDrain&, const SetDrain&) = default;
};

// Where in the outcomes of all batches, which are ordered by batch and sequence.
struct OutcomePlace {
  BatchId batch;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const OutcomePlace&, const OutcomePlace&) = default;
};
struct ListOutcomes {
  OutcomePlace after;
  std::uint32_t max_outcomes = kMaxOutcomesPerPage;
  std::string benchmark_prefix;  // only of benchmarks whose URI begins so
  friend bool operator==(const ListOutcomes&, const ListOutcomes&) = default;
};
struct ListWorkers {
  friend bool operator==(const ListWorkers&, const ListWorkers&) = default;
};

// The fleet in numbers, and what happened after `after_event`. Answered with a FleetInfo.
struct ShowFleet {
  std::uint64_t after_event = 0;
  std::uint32_t max_events = 100;  // 0: none; at most kMaxEventsPerList
  friend bool operator==(const ShowFleet&, const ShowFleet&) = default;
};

// Results and failures stored for these jobs answer no later job. Answered with Accepted (batch and
// index of the first job, and how many) once that is on disk.
struct FlagResults {
  std::vector<JobId> jobs;  // 1 to kMaxFlagsPerMessage; a job that stored nothing is passed over
  std::string reason;       // for people
  friend bool operator==(const FlagResults&, const FlagResults&) = default;
};

// A union member that this version does not know. Answered with UNSUPPORTED, never ignored.
struct UnknownMember {
  std::uint16_t member = 0;
  friend bool operator==(const UnknownMember&, const UnknownMember&) = default;
};

using ClientMessage = std::variant<ClientHello, SubmitJobs, FetchOutcomes, CancelBatch, ListBatches,
                                   ShowBatch, ShowJob, ListWorkers, ExplainJob, SetDrain,
                                   ListOutcomes, ShowFleet, FlagResults, UnknownMember>;

struct ClientRequest {
  std::uint64_t number = 0;
  ClientMessage message;
  friend bool operator==(const ClientRequest&, const ClientRequest&) = default;
};

// ---- coordinator -> client ----------------------------------------------------------------------

struct Welcome {
  ProtocolVersion version = kProtocolVersion;
  std::string coordinator;                // its name, for people
  std::uint64_t epoch = 0;                // counts its starts on this database
  std::vector<std::string> capabilities;  // optional features it knows; unknown names mean nothing
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The jobs are on disk.
struct Accepted {
  BatchId batch;
  std::uint32_t first_index = 0;  // of this message's jobs in the batch
  std::uint32_t job_count = 0;    // of this message
  friend bool operator==(const Accepted&, const Accepted&) = default;
};

// Nothing of the request was acted upon.
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
  std::string worker;              // who has it or measured it; "" if nobody
  std::optional<Outcome> outcome;  // kFinished
  friend bool operator==(const JobInfo&, const JobInfo&) = default;
};

enum class WorkerState : std::uint8_t {
  kReady,
  kDraining,
  kLost,
  kQuarantined,  // its figures are not trusted: it gets no jobs that anybody else could run
};

// An operator's word that workers are to take nothing new.
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
  std::uint64_t finished_jobs = 0;  // since it said hello
  std::uint32_t since_heartbeat_ms = 0;
  std::string http;  // HOST:PORT of its metrics; "" if it serves none
  HardwareFacts hardware;
  CompilerFacts compiler;
  std::uint32_t max_threads = 1;    // that a kernel may use there
  double canary_ratio = 0;          // time of its canaries now to when it started; 0: not measured
  std::vector<std::string> labels;  // that jobs may demand of it, those by its hardware too
  std::optional<Drain> drain;       // by an operator
  std::string quarantine;           // why it is in quarantine, for people; "" if it is not
  QuarantineCause quarantine_cause = QuarantineCause::kNone;
  std::uint64_t quarantined_ms = 0;     // for how long; 0: it is not
  std::vector<std::string> hindrances;  // as in its hello
  friend bool operator==(const WorkerInfo&, const WorkerInfo&) = default;
};

struct WorkerList {
  std::vector<WorkerInfo> workers;
  friend bool operator==(const WorkerList&, const WorkerList&) = default;
};

// One worker, as it looks to a job that waits.
struct WorkerFit {
  std::string name;
  WorkerState state = WorkerState::kReady;
  bool connected = true;
  std::uint32_t leased_jobs = 0;
  std::uint32_t credit = 1;  // leases it takes at once
  // What the job demands and it has not; none of it: it matches.
  bool other_device = false;
  std::uint32_t max_threads = 0;  // its most, if the job wants more; else 0
  std::vector<std::string> missing_labels;
  bool other_affinity = false;  // the job's affinity is bound to another worker
  std::string quarantine;       // as in WorkerInfo

  bool matches() const {
    return !other_device && max_threads == 0 && missing_labels.empty() && !other_affinity;
  }
  friend bool operator==(const WorkerFit&, const WorkerFit&) = default;
};

// What a job waits for, who has it, or what became of it.
struct JobExplanation {
  JobId job;
  JobState state = JobState::kQueued;
  std::string reason;  // all of it in a sentence or two, for people
  std::int32_t priority = 0;
  std::uint64_t waited_ms = 0;  // since it was accepted; over a restart, only with a deadline
  std::optional<std::uint64_t> deadline_left_ms;
  std::uint32_t attempts = 0;  // leases so far, with the one that runs
  // kQueued. Jobs with the same demand whose turn comes before.
  std::uint64_t ahead_own = 0;  // of the same client; at least so many, if they are not all counted
  bool ahead_own_is_exact = true;
  std::uint64_t ahead_others = 0;       // of other clients, if all jobs take alike
  std::uint32_t other_clients = 0;      // that have such jobs
  std::optional<JobId> follows;         // an equal job under way, whose answer it gets
  std::string affinity_worker;          // name of the one that its affinity is bound to; "": none
  std::uint64_t unserved_ms = 0;        // for how long no worker has been there that matches
  std::uint64_t unserved_limit_ms = 0;  // then it ends with NO_MATCHING_WORKER
  std::vector<WorkerFit> workers;       // those that fit best first; at most kMaxExplainedWorkers
  std::uint32_t more_workers = 0;       // that are not listed
  // kLeased
  std::string worker;
  std::uint64_t leased_ms = 0;
  std::optional<Outcome> outcome;  // kFinished
  friend bool operator==(const JobExplanation&, const JobExplanation&) = default;
};

struct OutcomeList {
  std::vector<Outcome> outcomes;  // by batch and sequence
  OutcomePlace next;    // to go on after; further than the last one where rows were passed over
  bool is_end = false;  // there is nothing after that now
  friend bool operator==(const OutcomeList&, const OutcomeList&) = default;
};

// Something that happened to the fleet.
struct FleetEvent {
  std::uint64_t sequence = 0;  // ascends; gaps are events that are no longer kept
  WallTime at{};
  std::string kind;     // "worker.joined"; there may be kinds that a reader does not know
  std::string subject;  // a worker's name; "": none
  std::optional<BatchId> batch;
  std::uint64_t count = 0;  // jobs or leases; what of, the kind says
  std::string text;         // for people
  friend bool operator==(const FleetEvent&, const FleetEvent&) = default;
};

struct FailureCount {
  std::string code;  // its name
  std::uint64_t count = 0;
  friend bool operator==(const FailureCount&, const FailureCount&) = default;
};

// Counts are since the coordinator's start.
struct FleetInfo {
  std::uint64_t epoch = 0;  // another one, and all counts and events begin anew
  WallTime started_at{};
  WallTime now{};
  std::string version;           // of the coordinator
  std::string http;              // HOST:PORT of its /metrics; "": not known
  std::uint64_t queued_cpu = 0;  // jobs that wait for a worker, by the device they ask for
  std::uint64_t queued_cuda = 0;
  std::uint64_t queued_any = 0;
  std::uint64_t leased_jobs = 0;
  std::optional<WallTime> oldest_queued_at;  // when it was accepted, about
  std::uint64_t accepted_jobs = 0;
  std::uint64_t finished_jobs = 0;  // with an outcome
  std::uint64_t failed_jobs = 0;    // of those, without a measurement
  std::uint64_t shared_jobs =
      0;  // of those, answered from the store or with an equal job's outcome
  std::uint32_t workers_ready = 0;
  std::uint32_t workers_draining = 0;
  std::uint32_t workers_lost = 0;
  std::uint32_t workers_quarantined = 0;
  bool storage_full = false;
  bool stopping = false;
  std::vector<FailureCount> failures;  // without zeros
  std::uint64_t last_event = 0;        // the newest one; 0: none yet
  std::vector<FleetEvent> events;      // ascending
  friend bool operator==(const FleetInfo&, const FleetInfo&) = default;
};

using CoordinatorMessage =
    std::variant<Welcome, Accepted, Refused, OutcomePage, BatchList, BatchInfo, JobInfo, WorkerList,
                 JobExplanation, OutcomeList, FleetInfo, UnknownMember>;

struct CoordinatorReply {
  std::uint64_t number = 0;  // the request's; 0 answers bytes whose number could not be read
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
  Uuid worker;       // of the daemon's process: a restarted worker is a new one
  std::string name;  // host and pid, for people
  std::uint32_t pid = 0;
  std::uint32_t slots = 1;   // kernels it times at once
  std::uint32_t credit = 1;  // leases it takes at once: what is timed and what is prepared ahead
  std::string http;
  HardwareFacts hardware;
  CompilerFacts compiler;
  std::string policy;               // Conditions::policy of its measurements
  std::uint32_t max_threads = 1;    // that a kernel may use here
  std::vector<std::string> labels;  // it was given; at most kMaxLabels
  // What may make its figures worse than they need be, for people; at most kMaxHindrances.
  std::vector<std::string> hindrances;
  std::vector<HeldLease> held;            // what it still has, after a reconnect
  std::vector<std::string> capabilities;  // optional features it knows; unknown names mean nothing
  friend bool operator==(const WorkerHello&, const WorkerHello&) = default;
};

enum class DrainState : std::uint8_t { kServing, kDraining };

// Whether kernels that are always the same take as long as they did when the worker started.
enum class CanaryState : std::uint8_t { kSteady, kDrifting };

struct Heartbeat {
  DrainState drain = DrainState::kServing;  // kDraining: grant nothing more
  std::vector<LeaseId> held;
  double canary_ratio = 0;  // time of its canaries now to when it started; 0: not measured
  CanaryState canary = CanaryState::kSteady;
  std::uint64_t steady_since_ms = 0;  // since its canaries were last seen to be steady
  // Of those that drift, the one that is furthest out; none: they are steady, or it does not say.
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

// Leases given back unrun, and the last message of a worker that goes.
struct Goodbye {
  std::vector<LeaseId> returned;
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// Leases given back unrun, as GiveBack asked.
struct Returned {
  std::vector<LeaseId> leases;
  friend bool operator==(const Returned&, const Returned&) = default;
};

using WorkerMessage =
    std::variant<WorkerHello, Heartbeat, Reports, Goodbye, Returned, UnknownMember>;

// ---- coordinator -> worker ----------------------------------------------------------------------

struct WorkerWelcome {
  ProtocolVersion version = kProtocolVersion;
  std::uint64_t epoch = 0;
  std::uint32_t heartbeat_ms = 1000;      // how often the worker is to be heard
  std::vector<std::string> capabilities;  // optional features it knows; unknown names mean nothing
  double reference_mhz = 0;  // clock that the worker's hardware class states times at; 0: its own
  friend bool operator==(const WorkerWelcome&, const WorkerWelcome&) = default;
};

struct Lease {
  LeaseId lease;
  JobId job;
  std::uint32_t attempt = 1;
  JobSpec spec;
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct Leases {
  std::vector<Lease> leases;
  friend bool operator==(const Leases&, const Leases&) = default;
};

// The reports under these leases are on disk, or no longer wanted: forget them.
struct ReportsStored {
  std::vector<LeaseId> leases;
  friend bool operator==(const ReportsStored&, const ReportsStored&) = default;
};

// Drop these if they have not run yet; a report for them is not wanted.
struct Revoke {
  std::vector<LeaseId> leases;
  friend bool operator==(const Revoke&, const Revoke&) = default;
};

// What has not started of these is to be given back (Returned): somebody else has time for it, or
// the worker is drained. Only to workers with kGiveBackCapability.
struct GiveBack {
  std::vector<LeaseId> leases;
  friend bool operator==(const GiveBack&, const GiveBack&) = default;
};
inline constexpr std::string_view kGiveBackCapability = "give-back";
// The worker says with a heartbeat at once that it has a lease whose attempt is above 1.
inline constexpr std::string_view kAnnounceCapability = "announce";

struct HeartbeatAnswer {
  friend bool operator==(const HeartbeatAnswer&, const HeartbeatAnswer&) = default;
};

// The coordinator does not know this peer (it was restarted, or gave the worker up): say hello
// again.
struct HelloWanted {
  friend bool operator==(const HelloWanted&, const HelloWanted&) = default;
};

using WorkerCommand = std::variant<WorkerWelcome, Leases, ReportsStored, Revoke, HeartbeatAnswer,
                                   HelloWanted, Refused, GiveBack, UnknownMember>;

}  // namespace loopfleet::wire
