#pragma once
// Effect: everything that the coordinator's core can ask for. A closed set. The shell executes
// effects in order and decides nothing. An effect that states that something is on disk is made
// only after its Persisted event.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/uuid.h"
#include "common/fleet/fleet_model.h"
#include "common/job/failure.h"
#include "common/job/outcome.h"
#include "common/job/quarantine.h"
#include "common/job/stage.h"
#include "common/wire/message.h"
#include "coordinator/core/contract/event.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

struct ReplyToClient {
  PeerId peer;
  std::uint64_t number = 0;
  wire::CoordinatorMessage message;
};

// The client that a page of outcomes is read for. Reads take turns by client (read_queue.h).
struct Payer {
  Uuid client;
  KeyText key = {};
};

// Read the batch and the outcomes after `after_sequence` from storage, and reply with as many as
// fit one frame (an OutcomePage; NOT_FOUND for an unknown batch).
struct SendOutcomes {
  PeerId peer;
  std::uint64_t number = 0;
  Payer payer;
  wire::FetchOutcomes fetch;
};

// Why a job is not in the core: it is over, or it may still have to be read after a restart.
enum class Unknown : std::uint8_t { kIsOver, kMayBeToCome };

// Answer from storage alone, which has every batch that was ever accepted.
struct AnswerFromStorage {
  PeerId peer;
  std::uint64_t number = 0;
  Payer payer = {};  // for a page of outcomes
  std::variant<wire::ListBatches, wire::ShowBatch, wire::ExplainJob, wire::ListOutcomes,
               wire::FindBest>
      question;
  Unknown job = Unknown::kIsOver;  // for ExplainJob
};

// Answer with the job as stored. `live` is what only the core knows of a job without an outcome.
struct LiveJob {
  wire::JobState state = wire::JobState::kQueued;
  std::uint32_t attempts = 0;
  std::string worker;
};
struct SendJob {
  PeerId peer;
  std::uint64_t number = 0;
  JobId job;
  std::optional<LiveJob> live;
};

// Answer with the fleet's figures: `fleet` is what the core knows; the shell knows the rest.
struct SendFleet {
  PeerId peer;
  std::uint64_t number = 0;
  wire::ShowFleet question;
  FleetModel fleet;
};

struct SendToWorker {
  PeerId peer;
  wire::WorkerCommand command;
};

// Answer a worker's code lookup with the newest stored measurement of this machine code and
// program, if it matches `key` (its tree does not count), else with none
// (StoreReader::FindSameCode).
struct AnswerCodeLookup {
  PeerId peer;
  wire::CodeLookup lookup;
  ProgramKey program;  // of the job
  storage::ResultKey key;
  std::string measured_by;  // accept only a figure of the worker of this name; "": of any worker
};

// Who sends or wants a piece of a blob.
struct BlobPeer {
  PeerId peer;
  std::optional<std::uint64_t> number = {};  // of a client's request; none: it is a worker
};
// Keep this piece, and answer how much of its blob is held.
struct KeepBlob {
  BlobPeer from;
  Uuid client = {};  // whose allowance it counts towards; nil: an observed value, from a worker
  wire::BlobPiece piece;
};
struct SendBlob {
  BlobPeer to;
  wire::BlobWanted wanted;
};

enum class WhenFull : std::uint8_t {
  kRefuse,  // when the disk is full: PersistRefused
  kRetry    // wait for room; later tokens of this kind wait behind it
};

// Write these in one transaction, then send Persisted with the token. Tokens are written in
// ascending order, except those that are refused. Several may share a transaction and an event.
struct Persist {
  Token token = 0;
  std::vector<storage::Write> writes;
  WhenFull when_full = WhenFull::kRetry;
};

// For metrics and the log; nothing depends on it.
struct JobsWereAccepted {
  std::uint32_t count = 0;
  std::uint32_t first_index = 0;  // 0: the batch's first jobs
  std::optional<BatchId> batch;   // none: an internal batch of the coordinator
  std::uint32_t batch_jobs = 0;   // in the batch so far, including these
  wire::BatchEnd end = wire::BatchEnd::kComplete;
};
struct FinishedJob {
  std::optional<FailureCode> failure;
  OutcomeSource source = OutcomeSource::kMeasured;
  StageDurations stages;
};
struct JobsWereFinished {
  std::vector<FinishedJob> jobs;  // by one event
};
// The batch is over: nothing about it changes any more.
struct BatchWasFinished {
  BatchId batch;
  std::uint32_t jobs = 0;
  bool cancelled = false;
};
struct OutcomesWereStored {
  std::uint32_t count = 0;
  Nanos took{0};  // until they were on disk
};
struct RequestWasRefused {
  FailureCode code = FailureCode::kBusy;
};
enum class WorkerChange : std::uint8_t {
  kJoined,
  kReattached,
  kLeft,
  kLost,
  kRefused,
  kQuarantined,
  kReleased,  // from quarantine
  kDrained,   // by an operator
  kResumed,
};
struct WorkerChanged {
  WorkerChange change = WorkerChange::kJoined;
  std::string name;
  std::uint32_t leases = 0;    // kept (kReattached) or revoked (kLeft, kLost)
  Quarantine quarantine = {};  // the reason (kQuarantined)
};
struct ReportWasImplausible {
  std::string worker;
  JobId job;
  std::string reason;
};
// A worker returned a job that its version cannot read.
struct LeaseWasUnreadable {
  std::string worker;
  JobId job;
  std::string reason;
};
// One worker reported that a job fails; another one measured it.
struct WorkersDisagreed {
  std::string failed;
  std::string measured;
  JobId job;
  FailureCode code = FailureCode::kWrongOutput;
};
struct JobWasRetried {
  FailureCode code = FailureCode::kWorkerCrashed;
};
using Observation =
    std::variant<JobsWereAccepted, JobsWereFinished, BatchWasFinished, OutcomesWereStored,
                 RequestWasRefused, WorkerChanged, ReportWasImplausible, LeaseWasUnreadable,
                 WorkersDisagreed, JobWasRetried>;

using Effect =
    std::variant<ReplyToClient, SendOutcomes, AnswerFromStorage, SendJob, SendFleet, SendToWorker,
                 AnswerCodeLookup, KeepBlob, SendBlob, Persist, Observation>;
using Effects = std::vector<Effect>;

}  // namespace loopfleet::coordinator
