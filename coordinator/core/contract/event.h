#pragma once
// Event: everything that can happen to the coordinator's core. A closed set: nothing else can
// influence the core, so a sequence of events with their moments replays exactly.

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/looptree/tree/key.h"
#include "common/wire/keys/role.h"
#include "common/wire/message.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

// When an event happens. Decisions use the instant; the wall time is only recorded.
struct Moment {
  Instant instant{};
  WallTime wall{};
};

// The routing id of a connection. Client and worker connections have separate id spaces.
using PeerId = std::string;

// The text of the public key that authenticated the connection; "" without keys.
using KeyText = std::string;

// Names one Persist effect. Assigned in ascending order.
using Token = std::uint64_t;

// ---- what is known about a job when it is submitted (see job_resolver.h)

// To be run by a worker, answered from the store, or over at once (INVALID_ACTION, say).
using Resolution = std::variant<ResolvedTask, storage::StoredAnswer, Failure>;

struct ResolvedJob {
  JobSpec spec;
  Resolution resolution;
};

// ---- events

// The first event: the state that the last run left behind.
struct Recovered {
  struct Job {
    JobId id;
    ResolvedJob job;
    std::optional<WallTime> accepted_at;  // only of a job with a deadline
  };
  std::uint64_t epoch = 1;
  Uuid incarnation;  // of the database
  std::uint64_t next_batch = 1;
  std::vector<storage::StoredBatch> batches;
  std::vector<Job> jobs;       // unfinished, in order
  std::vector<JobId> damaged;  // unfinished, and the stored job is unreadable
  std::vector<storage::ReferenceClock> reference_clocks;
  std::vector<storage::WorkersDrained> drains;
  // How many jobs are still to come in JobsRecovered, or slightly more. 0: all are here.
  std::size_t jobs_to_come = 0;
};

// More of the state that the last run left behind. Jobs come in order, except those that a worker
// reports on: these come before the report (kEarly), and are skipped when their place in the order
// is reached.
struct JobsRecovered {
  enum class Part : std::uint8_t { kEarly, kInOrder, kLast };
  Part part = Part::kInOrder;
  std::vector<Recovered::Job> jobs;
  std::vector<JobId> damaged;
};

// A wire::SubmitJobs with everything that had to be looked up for it.
struct Submission {
  PeerId peer;
  KeyText key = {};
  std::uint64_t number = 0;
  Uuid request_id;
  std::string digest;
  std::optional<BatchId> append_to;
  wire::BatchEnd end = wire::BatchEnd::kComplete;
  std::vector<ResolvedJob> jobs;
  std::uint64_t affinity_changes = 0;  // AffinityTable::changes before the jobs were resolved
  // The request was accepted before; `jobs` may be empty then.
  std::optional<storage::StoredRequest> seen;
  // From Core::CheckRoomFor. `jobs` is empty then, because they were not resolved.
  std::optional<Failure> no_room;
};

using ClientQuestion =
    std::variant<wire::ClientHello, wire::FetchOutcomes, wire::CancelBatch, wire::ListBatches,
                 wire::ShowBatch, wire::ShowJob, wire::ListWorkers, wire::ExplainJob,
                 wire::SetDrain, wire::ListOutcomes, wire::ShowFleet, wire::FlagResults,
                 wire::FindBest, wire::BlobPiece, wire::BlobWanted, wire::UnknownMember>;
struct ClientAsked {
  PeerId peer;
  std::uint64_t number = 0;
  ClientQuestion question;
  // The connection's role. Without keys, every peer that can connect is this machine's user and may
  // do everything.
  wire::Role role = wire::Role::kAdmin;
  KeyText key = {};
  // Of FlagResults: why one of its jobs cannot be flagged, by the store.
  std::optional<Failure> no_outcome = {};
};

// A message could not be sent: the connection is gone, or its peer does not read.
struct ClientUnreachable {
  PeerId peer;
};

struct WorkerSaid {
  PeerId peer;
  wire::WorkerMessage message;
  KeyText key = {};
};

struct WorkerUnreachable {
  PeerId peer;
  std::vector<LeaseId> undelivered;  // leases in the messages that could not be sent
};

// The writes of these tokens, ascending, and of all earlier kRetry tokens, are on disk. They became
// so together: what the core says of them it says once, to each peer in one message.
struct Persisted {
  std::vector<Token> tokens;
};
// Nothing of this token (a kRefuse one) is or will be on disk.
struct PersistRefused {
  Token token = 0;
  Failure failure;
};

// These keys authorize nothing any more: their connections are dropped and get no further message.
struct KeysRevoked {
  std::set<KeyText> keys;
};

struct Tick {};

// The process is about to end: accept and grant nothing more.
struct DrainRequested {};

using Event =
    std::variant<Recovered, JobsRecovered, Submission, ClientAsked, ClientUnreachable, WorkerSaid,
                 WorkerUnreachable, Persisted, PersistRefused, KeysRevoked, Tick, DrainRequested>;

// The names that metrics count events under: "submission". In the order of Event.
inline constexpr std::array<std::string_view, std::variant_size_v<Event>> kEventNames = {
    "recovered",
    "jobs_recovered",
    "submission",
    "question",
    "client_unreachable",
    "worker_message",
    "worker_unreachable",
    "persisted",
    "persist_refused",
    "keys_revoked",
    "tick",
    "drain"};

}  // namespace loopfleet::coordinator
