@0x8d5404ce7c3ca563;
# Between clients and the coordinator. A client numbers its requests; each is answered by exactly one
# reply of the same number. Grows by adding only (see job.capnp).

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("loopfleet::schema");
using Job = import "job.capnp";
using Outcome = import "outcome.capnp";

struct Version {
  major @0 :UInt16;  # another major version is refused: VERSION_MISMATCH
  minor @1 :UInt16;  # a higher one only adds
}

# ---- client -> coordinator ------------------------------------------------------------------------

struct ClientRequest {
  number @0 :UInt64;  # chosen by the client, ascending; comes back in the reply
  union {
    none @1 :Void;  # refused: MALFORMED
    hello @2 :ClientHello;
    submit @3 :SubmitJobs;
    fetchOutcomes @4 :FetchOutcomes;
    cancelBatch @5 :UInt64;     # batch id
    listBatches @6 :UInt32;     # at most this many, the newest; above 1,000 refused
    showBatch @7 :UInt64;       # batch id; 0: the newest that a client sent
    showJob @8 :Job.JobId;
    listWorkers @9 :Void;
    explainJob @10 :Job.JobId;
    setDrain @11 :SetDrain;         # needs the role admin where there are roles
    listOutcomes @12 :ListOutcomes;
    showFleet @13 :ShowFleet;
    flagResults @14 :FlagResults;   # needs the role admin where there are roles
  }
}

struct ClientHello {
  version @0 :Version;
  client @1 :Data;              # 16 random bytes, not all 0; the same over reconnects
  program @2 :Text;             # "loopfleet 0.1.0", for the log; at most 512 bytes
  capabilities @3 :List(Text);  # optional features the sender knows; unknown names are passed over;
                                # at most 64 of 256 bytes
}

struct SubmitJobs {
  # Sent again with the same content this is harmless; the same id with other content is
  # DUPLICATE_ID_CONFLICT.
  requestId @0 :Data;           # 16 random bytes, not all 0
  appendTo @1 :UInt64;          # one of this client's open batches; 0: a new one
  moreFollows @2 :Bool;         # the batch stays open for further jobs
  jobs @3 :List(Job.JobSpec);   # at most 4,096; may be empty to end a batch
}

struct FetchOutcomes {
  batch @0 :UInt64;
  afterSequence @1 :UInt64;         # the last one the client has; 0: from the first
  maxOutcomes @2 :UInt32 = 1000;    # 1 .. 1,000, others refused; the page may hold fewer
  waitMs @3 :UInt32;                # milliseconds to wait for a first one; the coordinator may bound it
}

struct SetDrain {
  # Answered with `workers`: those that it concerns, as they are then. On disk when it is answered.
  target @0 :Text;  # a host's name, or a worker's name or whole id; at most 512 bytes, not empty
  drain @1 :Bool;   # false: resume
  reason @2 :Text;  # for people; at most 512 bytes
  by @3 :Text;      # who says so, for people; at most 512 bytes
}

struct ListOutcomes {
  # Outcomes of all batches, by batch and sequence, after this one.
  afterBatch @0 :UInt64;
  afterSequence @1 :UInt64;
  maxOutcomes @2 :UInt32 = 1000;  # 1 .. 1,000, others refused; the reply may hold fewer
  benchmarkPrefix @3 :Text;       # only of benchmarks whose URI begins so; at most 4,096 bytes
}

struct ShowFleet {
  afterEvent @0 :UInt64;         # events after this one, the oldest first; 0: from the first that is kept
  maxEvents @1 :UInt32 = 100;    # above 1,000 refused; 0: none
}

struct FlagResults {
  # What was stored for these jobs answers no later job. Answered with `accepted` (batch and firstIndex
  # of the first job, jobCount jobs) once it is on disk. A job that stored nothing is passed over.
  jobs @0 :List(Job.JobId);  # 1 to 256
  reason @1 :Text;           # for people; at most 512 bytes
}

# ---- coordinator -> client ------------------------------------------------------------------------

struct CoordinatorReply {
  number @0 :UInt64;  # the request's; 0 answers bytes whose number could not be read
  union {
    none @1 :Void;  # refused: MALFORMED
    welcome @2 :Welcome;
    accepted @3 :Accepted;
    refused @4 :Refused;
    outcomes @5 :OutcomePage;
    batches @6 :List(BatchInfo);   # newest first; at most 1,000
    batch @7 :BatchInfo;
    job @8 :JobInfo;
    workers @9 :List(WorkerInfo);  # at most 10,000, and as many as fit one message
    explanation @10 :JobExplanation;
    outcomeList @11 :OutcomeList;
    fleet @12 :FleetInfo;
  }
}

struct Welcome {
  version @0 :Version;
  coordinator @1 :Text;         # its name, for people; at most 512 bytes
  epoch @2 :UInt64;             # counts the coordinator's starts on this database
  capabilities @3 :List(Text);  # as in ClientHello
}

struct Accepted {
  # The jobs (of flagResults: the flags) are on disk.
  batch @0 :UInt64;
  firstIndex @1 :UInt32;  # of the request's jobs in the batch
  jobCount @2 :UInt32;    # of the request
}

struct Refused {
  # Nothing of the request was acted upon.
  failure @0 :Outcome.Failure;
  retryAfterMs @1 :UInt32;  # milliseconds; 0 where trying again cannot help
}

enum BatchState {
  open @0;       # may be appended to
  running @1;    # complete, not every job has an outcome
  finished @2;   # every job has an outcome
  cancelled @3;
}

struct BatchInfo {
  batch @0 :UInt64;
  client @1 :Data;         # 16 bytes
  state @2 :BatchState;
  submittedAt @3 :Int64;   # nanoseconds since 1970-01-01 UTC
  jobCount @4 :UInt32;
  finished @5 :UInt32;     # jobs with an outcome
  failed @6 :UInt32;       # of those, without a measurement
  fromStore @7 :UInt32;    # of those, answered from the store
}

struct OutcomePage {
  batch @0 :BatchInfo;
  outcomes @1 :Outcome.OutcomeColumns;  # by ascending sequence, without gaps
}

struct OutcomeList {
  outcomes @0 :Outcome.OutcomeColumns;
  batch @1 :List(UInt64);    # of each row
  # Where to go on. Rows may have been passed over, so this can be further than the last one.
  nextBatch @2 :UInt64;
  nextSequence @3 :UInt64;
  isEnd @4 :Bool;            # there is nothing after that now
}

enum JobState {
  queued @0;
  leased @1;
  finished @2;
}

struct JobInfo {
  job @0 :Job.JobId;
  state @1 :JobState;
  spec @2 :Job.JobSpec;
  attempts @3 :UInt32;
  worker @4 :Text;                      # who has it or measured it; empty: nobody; at most 512 bytes
  outcome @5 :Outcome.OutcomeColumns;   # absent, or exactly one row, of this job
}

enum WorkerState {
  ready @0;
  draining @1;
  lost @2;
  quarantined @3;  # its figures are in doubt: it gets only jobs that no other worker could run
}

enum QuarantineCause {
  none @0;
  someCanary @1;         # its canaries drift; which, its worker does not say
  arithmeticCanary @2;
  secondCacheCanary @3;
  memoryCanary @4;
  reservedAudits @5;     # reserved: was audits; read as someCanary
}

struct WorkerInfo {
  worker @0 :Data;              # 16 bytes
  name @1 :Text;                # at most 512 bytes
  state @2 :WorkerState;
  pid @3 :UInt32;
  slots @4 :UInt32;             # kernels it times at once
  leasedJobs @5 :UInt32;
  finishedJobs @6 :UInt64;      # since it said hello
  sinceHeartbeatMs @7 :UInt32;
  http @8 :Text;                # HOST:PORT of its metrics; empty: none; at most 512 bytes
  hardware @9 :Outcome.HardwareFacts;
  compiler @10 :Outcome.CompilerFacts;
  maxThreads @11 :UInt32 = 1;   # the most that a kernel may use there
  canaryRatio @12 :Float64;     # time of its canaries now to when it started; 0: not measured
  labels @13 :List(Text);       # that jobs may demand of it, "isa=..." and its like too; at most 128 of 768 bytes
  drain @14 :Drain;             # by which an operator drained it; absent: by none
  quarantine @15 :Text;         # why it is in quarantine; empty: it is not; at most 512 bytes
  reservedAudits @16 :UInt32;   # reserved: was of its measurements, repeated by others
  reservedDisputes @17 :UInt32; # reserved: was of those, that came out differently
  hindrances @18 :List(Text);   # as in its hello
  quarantineCause @19 :QuarantineCause;
  reservedRefutedBy @20 :List(Text);  # reserved: was the workers that agreed against it
  quarantinedMs @21 :UInt64;    # for how long; 0: it is not
  reservedLent @22 :Bool;       # reserved: was whether it got jobs in quarantine
}

struct FleetInfo {
  # The fleet in numbers, and what happened lately. Counts are since the coordinator's start.
  epoch @0 :UInt64;              # as in Welcome: another one, and all counts and events begin anew
  startedAt @1 :Int64;           # of the coordinator; nanoseconds since 1970-01-01 UTC, as all times here
  now @2 :Int64;
  version @3 :Text;              # of the coordinator; at most 512 bytes
  http @4 :Text;                 # HOST:PORT of its /metrics; empty: not known; at most 512 bytes
  queuedCpu @5 :UInt64;          # jobs that wait for a worker, by the device they ask for
  queuedCuda @6 :UInt64;
  queuedAny @7 :UInt64;
  leasedJobs @8 :UInt64;
  oldestQueuedAt @9 :Int64;      # when the one that waits longest was accepted, about; 0: none waits
  acceptedJobs @10 :UInt64;
  finishedJobs @11 :UInt64;      # with an outcome
  failedJobs @12 :UInt64;        # of those, without a measurement
  sharedJobs @13 :UInt64;        # of those, answered from the store or with an equal job's outcome
  workersReady @14 :UInt32;
  workersDraining @15 :UInt32;
  workersLost @16 :UInt32;
  workersQuarantined @17 :UInt32;
  storageFull @18 :Bool;
  stopping @19 :Bool;
  failures @20 :List(FailureCount);  # by code, without zeros; at most 256
  lastEvent @21 :UInt64;         # the newest one; 0: none yet
  events @22 :List(Event);       # at most 1,000
}

struct FailureCount {
  code @0 :Text;                 # as in Failure; at most 64 bytes
  count @1 :UInt64;
}

struct Event {
  sequence @0 :UInt64;           # ascends; gaps are events that are no longer kept
  at @1 :Int64;
  kind @2 :Text;                 # "worker.joined"; there may be kinds that a reader does not know; at most 64 bytes
  subject @3 :Text;              # a worker's name; empty: none; at most 512 bytes
  batch @4 :UInt64;              # 0: none
  count @5 :UInt64;              # jobs or leases; what of, the kind says
  text @6 :Text;                 # for people; at most 512 bytes
}

struct Drain {
  target @0 :Text;   # as in SetDrain
  reason @1 :Text;
  by @2 :Text;
  since @3 :Int64;   # nanoseconds since 1970-01-01 UTC
}

struct WorkerFit {
  # One worker, as it looks to a job that waits. It matches if nothing below `credit` is set.
  name @0 :Text;                  # at most 512 bytes
  state @1 :WorkerState;
  disconnected @2 :Bool;
  leasedJobs @3 :UInt32;
  credit @4 :UInt32 = 1;
  otherDevice @5 :Bool;           # than the job is for
  maxThreads @6 :UInt32;          # its most, if the job wants more; else 0
  missingLabels @7 :List(Text);   # that the job demands; at most 64 of 256 bytes
  otherAffinity @8 :Bool;         # the job's affinity is bound to another worker
  quarantine @9 :Text;            # as in WorkerInfo
}

struct JobExplanation {
  # What a job waits for, who has it, or what became of it.
  job @0 :Job.JobId;
  state @1 :JobState;
  reason @2 :Text;                # for people; at most 4,096 bytes
  priority @3 :Int32;
  waitedMs @4 :UInt64;            # since it was accepted
  deadlineLeftMs @5 :Int64 = -1;  # -1: no deadline; others below 0 refused
  attempts @6 :UInt32;            # leases so far

  # While it is queued: jobs with the same demand whose turn comes before.
  aheadOwn @7 :UInt64;            # of the same client
  aheadOwnAtLeast @8 :Bool;       # there are more; they were not all counted
  aheadOthers @9 :UInt64;         # of other clients, if all jobs take alike
  otherClients @10 :UInt32;       # that have such jobs
  follows @11 :Job.JobId;         # an equal job under way, whose answer it gets; absent: none
  affinityWorker @12 :Text;       # name of the one its affinity is bound to; empty: none
  unservedMs @13 :UInt64;         # for how long no worker that matches has been there
  unservedLimitMs @14 :UInt64;    # then it ends with NO_MATCHING_WORKER
  workers @15 :List(WorkerFit);   # those that fit best first; at most 20
  moreWorkers @16 :UInt32;        # that are not listed

  worker @17 :Text;               # leased: who has it; at most 512 bytes
  leasedMs @18 :UInt64;           # leased: for how long
  outcome @19 :Outcome.OutcomeColumns;  # finished: exactly one row, of this job; else absent
}
