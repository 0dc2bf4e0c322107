@0xe7793ae8d0d85205;
# Messages between workers and the coordinator: hello, leases within the worker's credit, heartbeats,
# and reports that the worker keeps until they are acknowledged. Grows by adding only (see job.capnp).
#
# A lease id names one permission to run one job once. Ids are never reused, not even across restarts
# of the coordinator, so a late report is always recognised; 0 is refused.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("loopfleet::schema");
using Job = import "job.capnp";
using Outcome = import "outcome.capnp";
using Client = import "client.capnp";

# ---- worker -> coordinator ------------------------------------------------------------------------

struct WorkerMessage {
  union {
    none @0 :Void;  # refused: MALFORMED
    hello @1 :WorkerHello;
    heartbeat @2 :Heartbeat;
    reports @3 :Reports;
    goodbye @4 :List(UInt64);  # lease ids returned unrun; the worker's last message; at most 4,096
    returned @5 :List(UInt64);  # lease ids returned unrun, in answer to giveBack or by a worker that drains; at most 4,096
    codeLookup @6 :CodeLookup;  # only to coordinators with the capability code-lookup
    blobWanted @7 :Client.BlobWanted;  # only to coordinators with the capability blobs
    putBlob @8 :Client.BlobPiece;  # answered with `blobHeld`; only to coordinators with the capability put-blob
  }
}

struct CodeLookup {
  # Asks whether the store has a figure of this machine code, so that the job need not be timed.
  lease @0 :UInt64;     # under which the code was compiled
  codeHash @1 :Text;    # hex digest of the object code; 1 to 128 bytes
}

struct HeldLease {
  lease @0 :UInt64;
  job @1 :Job.JobId;
}

struct WorkerHello {
  version @0 :Client.Version;
  worker @1 :Data;             # 16 random bytes, not all 0; new for each daemon process
  name @2 :Text;               # host and pid, in a container also its id's start; at most 512 bytes
  pid @3 :UInt32;
  slots @4 :UInt32 = 1;        # kernels it times at once; 0 refused
  credit @5 :UInt32 = 1;       # leases it takes at once; 0 and more than 4,096 refused
  http @6 :Text;               # HOST:PORT of its metrics; empty: none; at most 512 bytes
  hardware @7 :Outcome.HardwareFacts;
  compiler @8 :Outcome.CompilerFacts;
  policy @9 :Text;             # Conditions.policy of its measurements; at most 512 bytes
  held @10 :List(HeldLease);   # leases it still holds after a reconnect; at most 4,096
  capabilities @11 :List(Text);  # as in ClientHello
  maxThreads @12 :UInt32 = 1;  # the most that a kernel may use here; 0 refused
  labels @13 :List(Text);      # that jobs may demand; at most 64 of 256 bytes
  hindrances @14 :List(Text);  # what may degrade its figures, for people; at most 32 of 256 bytes
  isolation @15 :Text;         # Conditions.isolation of its measurements; at most 512 bytes; empty: an
                               # older worker does not say
}

enum CanaryState {
  steady @0;    # the canary kernels take as long as when the worker started
  drifting @1;  # they do not: its figures cannot be compared with earlier ones
}

enum Canary {
  unnamed @0;      # none drifts, or the worker does not say which
  arithmetic @1;
  secondCache @2;
  memory @3;
}

enum DrainState {
  serving @0;
  draining @1;  # grant nothing more
}

struct Heartbeat {
  drain @0 :DrainState;
  held @1 :List(UInt64);  # lease ids; at most 4,096
  canaryRatio @2 :Float64;  # canary time now over that at its start; 0: not measured. Finite
  canary @3 :CanaryState;
  steadySinceMs @4 :UInt64;  # milliseconds since its canaries were last measured as steady
  drifting @5 :Canary;       # the one that drifts most
}

struct Reports {
  # Row i of the columns is the evaluation of the job held under lease i.
  lease @0 :List(UInt64);
  batch @1 :List(UInt64);
  index @2 :List(UInt32);
  evaluations @3 :Outcome.EvaluationColumns;
}

# ---- coordinator -> worker ------------------------------------------------------------------------

struct WorkerCommand {
  union {
    none @0 :Void;  # refused: MALFORMED
    welcome @1 :WorkerWelcome;
    leases @2 :List(Lease);           # at most 4,096
    reportsStored @3 :List(UInt64);   # lease ids whose reports may be forgotten: on disk or not wanted
    revoke @4 :List(UInt64);          # lease ids to drop if they have not run yet
    heartbeatAnswer @5 :Void;
    helloWanted @6 :Void;             # the coordinator does not know this peer: send a hello again
    refused @7 :Client.Refused;
    giveBack @8 :List(UInt64);        # lease ids: the worker returns those that have not started
                                      # (`returned`); only to workers with the capability give-back
    codeLookupAnswer @9 :CodeLookupAnswer;
    blobPiece @10 :Client.BlobPiece;
    blobHeld @11 :WorkerBlobHeld;
  }
}

struct CodeLookupAnswer {
  lease @0 :UInt64;
  found @1 :Outcome.EvaluationColumns;  # one row, a measurement; no row: the store has none that is as
                                        # good and as new as the job asks for
}

struct WorkerBlobHeld {
  sha256 @0 :Text;
  bytes @1 :UInt64;             # as in CoordinatorReply.blobHeld
  failure @2 :Outcome.Failure;  # it cannot be kept; absent: it can
}

struct WorkerWelcome {
  version @0 :Client.Version;
  epoch @1 :UInt64;                 # counts the coordinator's starts on this database
  heartbeatMs @2 :UInt32 = 1000;    # interval of the worker's heartbeats; 0 refused
  capabilities @3 :List(Text);      # as in ClientHello
  referenceMhz @4 :Float64;         # reference clock of its hardware class; 0: the worker's own
}

struct Lease {
  lease @0 :UInt64;
  job @1 :Job.JobId;
  attempt @2 :UInt32 = 1;   # 1 for the first time the job is leased
  spec @3 :Job.JobSpec;
}
