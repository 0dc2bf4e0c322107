@0x8d5404ce7c3ca563;
# Messages between clients and the coordinator. A client numbers its requests; each is answered by
# exactly one reply of the same number. Grows by adding only (see job.capnp).

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("loopfleet::schema");
using Job = import "job.capnp";
using Outcome = import "outcome.capnp";

struct Version {
  major @0 :UInt16;  # another major version is refused: VERSION_MISMATCH
  minor @1 :UInt16;  # a higher minor version only adds
}

# ---- client -> coordinator ------------------------------------------------------------------------

struct ClientRequest {
  number @0 :UInt64;  # chosen by the client, ascending; repeated in the reply
  union {
    none @1 :Void;  # refused: MALFORMED
    hello @2 :ClientHello;
    submit @3 :SubmitJobs;
    fetchOutcomes @4 :FetchOutcomes;
    cancelBatch @5 :UInt64;     # batch id
    listBatches @6 :UInt32;     # how many of the newest, older unfinished ones for up to half of them; above 1,000 refused
    showBatch @7 :UInt64;       # batch id; 0: the newest that a client sent
    showJob @8 :Job.JobId;
    listWorkers @9 :Void;
    explainJob @10 :Job.JobId;
    setDrain @11 :SetDrain;         # needs the role admin where there are roles
    listOutcomes @12 :ListOutcomes;
    showFleet @13 :ShowFleet;
    flagResults @14 :FlagResults;   # needs the role admin where there are roles
    findBest @15 :FindBest;
    putBlob @16 :BlobPiece;         # answered with `blobHeld`
    getBlob @17 :BlobWanted;        # answered with `blobPiece`; since 1.4
  }
}

struct ClientHello {
  version @0 :Version;
  client @1 :Data;              # 16 random bytes, not all 0; the same across reconnects
  program @2 :Text;             # "loopfleet 0.1.0", for the log; at most 512 bytes
  capabilities @3 :List(Text);  # optional features of the sender; unknown names are ignored; at most 64
                                # of 256 bytes
}

struct SubmitJobs {
  # Idempotent: may be sent again with the same content. The same id with other content is
  # DUPLICATE_ID_CONFLICT.
  requestId @0 :Data;           # 16 random bytes, not all 0
  appendTo @1 :UInt64;          # one of this client's open batches; 0: a new one
  moreFollows @2 :Bool;         # the batch stays open for further jobs
  jobs @3 :List(Job.JobSpec);   # at most 4,096; may be empty to end a batch
}

struct FetchOutcomes {
  batch @0 :UInt64;
  afterSequence @1 :UInt64;         # the last one that the client has; 0: from the first
  maxOutcomes @2 :UInt32 = 1000;    # 1 .. 1,000, others refused; the page may hold fewer
  waitMs @3 :UInt32;                # milliseconds to wait for the first one; may be bounded
}

struct SetDrain {
  # Answered with `workers`, the affected workers in their new state, once it is on disk.
  target @0 :Text;  # host name, worker name or full worker id; at most 512 bytes, not empty
  drain @1 :Bool;   # false: resume
  reason @2 :Text;  # for people; at most 512 bytes
  by @3 :Text;      # the operator, for people; at most 512 bytes
}

struct ListOutcomes {
  # Outcomes of all batches, by batch and sequence, after this one.
  afterBatch @0 :UInt64;
  afterSequence @1 :UInt64;
  maxOutcomes @2 :UInt32 = 1000;  # 1 .. 1,000, others refused; the reply may hold fewer
  benchmarkPrefix @3 :Text;       # only benchmarks whose URI starts with it; at most 4,096 bytes
}

struct ShowFleet {
  afterEvent @0 :UInt64;         # events after this one, oldest first; 0: from the first that is kept
  maxEvents @1 :UInt32 = 100;    # above 1,000 refused; 0: none
}

struct FlagResults {
  # The stored results and failures of these jobs answer no later job. Answered with `accepted` (batch
  # and firstIndex of the first job, jobCount jobs) once that is on disk. A job that stored nothing is
  # skipped.
  jobs @0 :List(Job.JobId);  # 1 to 256
  reason @1 :Text;           # for people; at most 512 bytes
}

struct FindBest {
  # Answered with `jobs`: the fastest known schedules, the fastest first, each with the job that measured
  # it and its outcome. The batch of such a job may have been pruned.
  job @0 :Job.JobSpec;          # only its benchmark, dialect, device, threads and cache count
  hardwareClass @1 :Text;       # of the workers that measured them; empty: any; at most 512 bytes
  maxJobs @2 :UInt32 = 1;       # 1 to 64; there may be fewer
}

struct BlobPiece {
  # A piece of a blob: a program's bitcode, or an observed value. The SHA-256 of all its bytes names it.
  sha256 @0 :Text;              # 64 lower-case hexadecimal digits
  total @1 :UInt64;             # bytes of the whole; at most 16 MiB. 0, from a coordinator only: it has no such blob
  offset @2 :UInt64;            # of this piece
  bytes @3 :Data;               # at most 512 KiB, and not beyond `total`; none: how much is held?
}

struct BlobWanted {
  # Answered with `blobPiece`, from this offset on. From workers only to coordinators with the capability blobs.
  sha256 @0 :Text;      # 64 lower-case hexadecimal digits
  offset @1 :UInt64;    # at most 16 MiB
}

# ---- coordinator -> client ------------------------------------------------------------------------

struct CoordinatorReply {
  number @0 :UInt64;  # of the request; 0: the request's number could not be read
  union {
    none @1 :Void;  # refused: MALFORMED
    welcome @2 :Welcome;
    accepted @3 :Accepted;
    refused @4 :Refused;
    outcomes @5 :OutcomePage;
    batches @6 :List(BatchInfo);   # newest first; at most 1,000
    batch @7 :BatchInfo;
    job @8 :JobInfo;
    workers @9 :List(WorkerInfo);  # at most 10,000 and as many as fit one message
    explanation @10 :JobExplanation;
    outcomeList @11 :OutcomeList;
    fleet @12 :FleetInfo;
    jobs @13 :List(JobInfo);       # of findBest; at most 64
    blobHeld @14 :UInt64;          # bytes of the blob that are held, from its first on: go on there. All of
                                   # them: its hash is right and it is on disk
    blobPiece @15 :BlobPiece;
  }
}

struct Welcome {
  version @0 :Version;
  coordinator @1 :Text;         # its name, for people; at most 512 bytes
  epoch @2 :UInt64;             # number of the coordinator's starts on this database
  capabilities @3 :List(Text);  # as in ClientHello
  incarnation @4 :Data;         # 16 bytes: names its database; another one: a restored snapshot. Absent: not told
}

struct Accepted {
  # The jobs (of flagResults: the flags) are on disk.
  batch @0 :UInt64;
  firstIndex @1 :UInt32;  # index in the batch of the request's first job
  jobCount @2 :UInt32;    # jobs of the request
}

struct Refused {
  # The request had no effect.
  failure @0 :Outcome.Failure;
  retryAfterMs @1 :UInt32;  # milliseconds; 0: trying again cannot help
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
  # Continue after this. It is beyond the last row if rows were skipped.
  nextBatch @2 :UInt64;
  nextSequence @3 :UInt64;
  isEnd @4 :Bool;            # nothing follows at present
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
  worker @4 :Text;                      # holds or measured it; empty: none; at most 512 bytes
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
  someCanary @1;         # a canary drifts; the worker does not say which
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
  finishedJobs @6 :UInt64;      # since its hello
  sinceHeartbeatMs @7 :UInt32;
  http @8 :Text;                # HOST:PORT of its metrics; empty: none; at most 512 bytes
  hardware @9 :Outcome.HardwareFacts;
  compiler @10 :Outcome.CompilerFacts;
  maxThreads @11 :UInt32 = 1;   # the most that a kernel may use there
  canaryRatio @12 :Float64;     # canary time now over that at its start; 0: not measured
  labels @13 :List(Text);       # that jobs may demand, also from hardware; at most 128 of 768 bytes
  drain @14 :Drain;             # ordered by an operator; absent: none
  quarantine @15 :Text;         # why it is in quarantine; empty: it is not; at most 512 bytes
  reservedAudits @16 :UInt32;   # reserved: was the number of its measurements that others repeated
  reservedDisputes @17 :UInt32; # reserved: was the number of those that differed
  hindrances @18 :List(Text);   # as in WorkerHello
  quarantineCause @19 :QuarantineCause;
  reservedRefutedBy @20 :List(Text);  # reserved: was the workers whose results refuted it
  quarantinedMs @21 :UInt64;    # time in quarantine; 0: it is not
  reservedLent @22 :Bool;       # reserved: was whether it got jobs in quarantine
  outdated @23 :Text;           # what it lacks of this version; empty: nothing; at most 512 bytes
  recentFigures @24 :UInt32;    # its newest ones, at most 32
  recentImprecise @25 :UInt32;  # of these, with grade C or D
}

struct FleetInfo {
  # The fleet's state and recent events. Counts start at 0 with each start of the coordinator.
  epoch @0 :UInt64;              # as in Welcome; if it changes, counts and events have restarted
  startedAt @1 :Int64;           # of the coordinator; all times in nanoseconds since 1970-01-01 UTC
  now @2 :Int64;
  version @3 :Text;              # of the coordinator; at most 512 bytes
  http @4 :Text;                 # HOST:PORT of its /metrics; empty: not known; at most 512 bytes
  queuedCpu @5 :UInt64;          # jobs waiting for a worker, by requested device
  queuedCuda @6 :UInt64;
  queuedAny @7 :UInt64;
  leasedJobs @8 :UInt64;
  oldestQueuedAt @9 :Int64;      # approximate time when the oldest one was accepted; 0: none waits
  acceptedJobs @10 :UInt64;
  finishedJobs @11 :UInt64;      # with an outcome
  failedJobs @12 :UInt64;        # of those, without a measurement
  sharedJobs @13 :UInt64;        # finished from the store or with an equal job's outcome
  workersReady @14 :UInt32;
  workersDraining @15 :UInt32;
  workersLost @16 :UInt32;
  workersQuarantined @17 :UInt32;
  storageFull @18 :Bool;
  stopping @19 :Bool;
  failures @20 :List(FailureCount);  # by code, counts above 0 only; at most 256
  lastEvent @21 :UInt64;         # sequence of the newest event; 0: none yet
  events @22 :List(Event);       # at most 1,000
  health @23 :Text;              # in a sentence; empty: an older coordinator; at most 4,096 bytes
  attention @24 :List(Attention);  # the worst first; at most 64
}

enum Severity {
  notice @0;     # may be appended to
  warning @1;    # something does not work as it should
  problem @2;    # jobs are not accepted, not run, or their figures are in doubt
}

struct Attention {
  # One thing about the fleet that needs attention.
  kind @0 :Text;                 # "workers_lost"; a reader must accept unknown kinds; at most 64 bytes
  severity @1 :Severity;
  count @2 :UInt64;              # workers or jobs, depending on the kind
  sentence @3 :Text;             # for people; at most 4,096 bytes
}

struct FailureCount {
  code @0 :Text;                 # as in Failure; at most 64 bytes
  count @1 :UInt64;
}

struct Event {
  sequence @0 :UInt64;           # ascending; gaps are events that are no longer kept
  at @1 :Int64;
  kind @2 :Text;                 # "worker.joined"; a reader must accept unknown kinds; at most 64 bytes
  subject @3 :Text;              # a worker's name; empty: none; at most 512 bytes
  batch @4 :UInt64;              # 0: none
  count @5 :UInt64;              # jobs or leases, depending on the kind
  text @6 :Text;                 # for people; at most 512 bytes
}

struct Drain {
  target @0 :Text;   # as in SetDrain
  reason @1 :Text;
  by @2 :Text;
  since @3 :Int64;   # nanoseconds since 1970-01-01 UTC
}

struct WorkerFit {
  # How well one worker fits a waiting job. It matches if no field after `credit` is set but
  # `quarantine`.
  name @0 :Text;                  # at most 512 bytes
  state @1 :WorkerState;
  disconnected @2 :Bool;
  leasedJobs @3 :UInt32;
  credit @4 :UInt32 = 1;
  otherDevice @5 :Bool;           # the job is for another device
  maxThreads @6 :UInt32;          # its maximum, if the job needs more; else 0
  missingLabels @7 :List(Text);   # that the job demands; at most 64 of 256 bytes
  otherAffinity @8 :Bool;         # the job's affinity is bound to another worker
  quarantine @9 :Text;            # as in WorkerInfo
}

struct JobExplanation {
  # What a job waits for, which worker holds it, or how it ended.
  job @0 :Job.JobId;
  state @1 :JobState;
  reason @2 :Text;                # for people; at most 4,096 bytes
  priority @3 :Int32;
  waitedMs @4 :UInt64;            # since acceptance; without a deadline, since the last restart
  deadlineLeftMs @5 :Int64 = -1;  # -1: no deadline; others below 0 refused
  attempts @6 :UInt32;            # leases so far

  # While it is queued: jobs with the same demand that are served before it.
  aheadOwn @7 :UInt64;            # of the same client
  aheadOwnAtLeast @8 :Bool;       # aheadOwn is a lower bound
  aheadOthers @9 :UInt64;         # of other clients, if all jobs take equally long
  otherClients @10 :UInt32;       # clients that have such jobs
  follows @11 :Job.JobId;         # an equal job under way, whose outcome it shares; absent: none
  affinityWorker @12 :Text;       # name of the worker its affinity is bound to; empty: none
  unservedMs @13 :UInt64;         # time without a matching worker
  unservedLimitMs @14 :UInt64;    # after this it ends with NO_MATCHING_WORKER
  workers @15 :List(WorkerFit);   # best fit first; at most 20
  moreWorkers @16 :UInt32;        # not listed in workers

  worker @17 :Text;               # leased: name of its worker; at most 512 bytes
  leasedMs @18 :UInt64;           # leased: for how long
  outcome @19 :Outcome.OutcomeColumns;  # finished: exactly one row, of this job; else absent
}
