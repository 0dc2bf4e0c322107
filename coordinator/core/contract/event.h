#pragma once
// Event: everything that can happen to the coordinator's core. A closed set: what is not here
// cannot influence it, so a sequence of events with their moments replays exactly.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
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

// When an event happens. The instant decides; the wall time is only ever recorded.
struct Moment {
  Instant instant{};
  WallTime wall{};
};

// The routing id of a connection. Those of clients and of workers are apart.
using PeerId = std::string;

// The text of the public key that a connection was authenticated with; "" where there are none.
using KeyText = std::string;

// Names one Persist effect; given out in ascending order.
using Token = std::uint64_t;

// ---- what is known about a job when it is submitted (job_resolver.h finds it out)

struct ToMeasure {
  looptree::TreeKey tree;
  Placement placement = Placement::kCpu;
  std::uint64_t flop_count = 0;  // of one run; 0: not known
};
// A worker's turn; answered from the store; or over at once, for example by INVALID_ACTION.
using JobResolver = std::variant<ToMeasure, storage::StoredAnswer, Failure>;

struct AdmittedJob {
  JobSpec spec;
  JobResolver admission;
};

// ---- events

// The first event of all: what the last run left behind.
struct Recovered {
  struct Job {
    JobId id;
    AdmittedJob job;
    std::optional<WallTime> accepted_at;  // of one with a deadline
  };
  std::uint64_t epoch = 1;
  std::uint64_t next_batch = 1;
  std::vector<storage::StoredBatch> batches;
  std::vector<Job> jobs;       // unfinished, in order
  std::vector<JobId> damaged;  // unfinished, and what was asked can no longer be read
  std::vector<storage::ReferenceClock> reference_clocks;
  std::vector<storage::WorkersDrained> drains;
  // Some of the jobs are still to come, in JobsRecovered; so many, or a few more. 0: all are here.
  std::size_t jobs_to_come = 0;
};

// More of what the last run left behind. Each job comes in order, but for those that a worker has
// something to say about: these come before it says so, and are passed over when it is their turn.
struct JobsRecovered {
  enum class Part : std::uint8_t { kEarly, kInOrder, kLast };
  Part part = Part::kInOrder;
  std::vector<Recovered::Job> jobs;
  std::vector<JobId> damaged;
};

// A wire::SubmitJobs, with what had to be looked up for it.
struct Submission {
  PeerId peer;
  KeyText key = {};
  std::uint64_t number = 0;
  Uuid request_id;
  std::string digest;
  std::optional<BatchId> append_to;
  wire::BatchEnd end = wire::BatchEnd::kComplete;
  std::vector<AdmittedJob> jobs;
  // The request was accepted before; `jobs` may be empty then.
  std::optional<storage::StoredRequest> seen;
  // Core::CheckRoomFor: `jobs` is empty then, for nobody looked at them.
  std::optional<Failure> no_room;
};

using ClientQuestion =
    std::variant<wire::ClientHello, wire::FetchOutcomes, wire::CancelBatch, wire::ListBatches,
                 wire::ShowBatch, wire::ShowJob, wire::ListWorkers, wire::ExplainJob,
                 wire::SetDrain, wire::ListOutcomes, wire::ShowFleet, wire::FlagResults,
                 wire::UnknownMember>;
struct ClientAsked {
  PeerId peer;
  std::uint64_t number = 0;
  ClientQuestion question;
  // Of the connection. Without keys everybody who can connect is this machine's user, who may all.
  wire::Role role = wire::Role::kAdmin;
  KeyText key = {};
};

// Something could not be sent: the connection is gone, or its other end does not read.
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
  std::vector<LeaseId> undelivered;  // that were in what could not be sent
};

// The writes of this token, and of all earlier ones that keep trying, are on disk.
struct Persisted {
  Token token = 0;
};
// Nothing of this token (which was one to refuse when there is no room) is or will be on disk.
struct PersistRefused {
  Token token = 0;
  Failure failure;
};

// These keys authorize nobody any more: who came with one is gone, and gets nothing further.
struct KeysRevoked {
  std::set<KeyText> keys;
};

struct Tick {};

// The process is about to end: accept and grant nothing more.
struct DrainRequested {};

using Event =
    std::variant<Recovered, JobsRecovered, Submission, ClientAsked, ClientUnreachable, WorkerSaid,
                 WorkerUnreachable, Persisted, PersistRefused, KeysRevoked, Tick, DrainRequested>;

}  // namespace loopfleet::coordinator
