@0xc50656fc01d715e7;
# Messages of a later version: the structures of schema/ with members added, reduced to the parts that
# the tests fill in.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("loopfleet::newer_schema");
using Job = import "/schema/job.capnp";
using Outcome = import "/schema/outcome.capnp";
using Client = import "/schema/client.capnp";
using Worker = import "/schema/worker.capnp";

struct Action {
  union {
    none @0 :Void;
    toggleMode @1 :Void;
    toggleThread @2 :Void;
    idleSplit @3 :Void;
    up @4 :Void;
    down @5 :Void;
    swapUp @6 :Void;
    swapDown @7 :Void;
    split @8 :Int64;
    merge @9 :Void;
    unroll @10 :Void;
    vectorize @11 :Void;
    undo @12 :Void;
    dummy @13 :Void;
    mergeAll @14 :Void;
    tile @15 :Int64;      # new
  }
}

struct Source {
  union {
    none @0 :Void;
    uri @1 :Text;
    ir @2 :Text;
    stablehlo @3 :Text;   # new
  }
}

struct JobSpec {
  source @0 :Source;
  actions @1 :List(Action);
  rules @2 :UInt16;       # the number of an enumerant: a test may write any
}

struct Lease {
  lease @0 :UInt64;
  job @1 :Job.JobId;
  attempt @2 :UInt32 = 1;
  spec @3 :JobSpec;
}

struct SubmitJobs {
  requestId @0 :Data;
  appendTo @1 :UInt64;
  moreFollows @2 :Bool;
  jobs @3 :List(JobSpec);
  note @4 :Text;          # new
}

struct ClientRequest {
  number @0 :UInt64;
  union {
    none @1 :Void;
    hello @2 :Client.ClientHello;
    submit @3 :SubmitJobs;
    fetchOutcomes @4 :Client.FetchOutcomes;
    cancelBatch @5 :UInt64;
    listBatches @6 :UInt32;
    showBatch @7 :UInt64;
    showJob @8 :Job.JobId;
    listWorkers @9 :Void;
    explainJob @10 :Job.JobId;
    setDrain @11 :Client.SetDrain;
    listOutcomes @12 :Client.ListOutcomes;
    showFleet @13 :Client.ShowFleet;
    flagResults @14 :Client.FlagResults;
    findBest @15 :Client.FindBest;
    putBlob @16 :Client.BlobPiece;
    getBlob @17 :Client.BlobWanted;
    pauseBatch @18 :UInt64;  # new
  }
}

struct CoordinatorReply {
  number @0 :UInt64;
  union {
    none @1 :Void;
    welcome @2 :Client.Welcome;
    accepted @3 :Client.Accepted;
    refused @4 :Client.Refused;
    outcomes @5 :Client.OutcomePage;
    batches @6 :List(Client.BatchInfo);
    batch @7 :Client.BatchInfo;
    job @8 :Client.JobInfo;
    workers @9 :List(Client.WorkerInfo);
    jobExplanation @10 :Client.JobExplanation;
    outcomeList @11 :Client.OutcomeList;
    fleet @12 :Client.FleetInfo;
    jobs @13 :List(Client.JobInfo);
    blobHeld @14 :UInt64;
    blobPiece @15 :Client.BlobPiece;
    explanation @16 :Text;   # new
  }
}

struct WorkerMessage {
  union {
    none @0 :Void;
    hello @1 :Worker.WorkerHello;
    heartbeat @2 :Worker.Heartbeat;
    reports @3 :Worker.Reports;
    goodbye @4 :List(UInt64);
    returned @5 :List(UInt64);
    codeLookup @6 :Worker.CodeLookup;
    blobWanted @7 :Client.BlobWanted;
    putBlob @8 :Client.BlobPiece;
    progress @9 :UInt64;     # new
  }
}

struct WorkerCommand {
  union {
    none @0 :Void;
    welcome @1 :Worker.WorkerWelcome;
    leases @2 :List(Lease);
    reportsStored @3 :List(UInt64);
    revoke @4 :List(UInt64);
    heartbeatAnswer @5 :Void;
    helloWanted @6 :Void;
    refused @7 :Client.Refused;
    giveBack @8 :List(UInt64);
    codeLookupAnswer @9 :Worker.CodeLookupAnswer;
    blobPiece @10 :Client.BlobPiece;
    blobHeld @11 :Worker.WorkerBlobHeld;
    remeasure @12 :Void;     # new
  }
}
