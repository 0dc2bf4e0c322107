@0xade94e94d87d8aec;
# Jobs on the wire: what a client submits and what a worker is leased.
#
# Every schema of this folder grows by adding only: a field, an enumerant or a union member gets the
# next free number; numbers, types and meanings never change and are never reused. A reader refuses an
# unknown enumerant or union member (UNSUPPORTED) and never guesses. It does not see an unknown field,
# so a field that changes what a job means comes with a new minor version (docs/PROTOCOL.md,
# "Versions").
#
# Everywhere: Text is valid UTF-8; times are nanoseconds unless the name says otherwise; counts and
# lengths beyond the bounds of common/wire/bounds.h are refused (MALFORMED, or LIMIT_ACTIONS).

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("loopfleet::schema");

struct JobId {
  # A job is named by its index in its batch.
  batch @0 :UInt64;
  index @1 :UInt32;  # 0-based
}

struct Action {
  # One step of a walk, of either dialect. The replay decides which are legal where.
  union {
    none @0 :Void;          # refused: an action that was never filled in
    toggleMode @1 :Void;    # simple: between choosing a loop and sizing it
    toggleThread @2 :Void;  # simple: the loop's thread annotation
    idleSplit @3 :Void;     # simple: "split", which does nothing
    up @4 :Void;            # both: the cursor
    down @5 :Void;          # both: the cursor
    swapUp @6 :Void;        # agent: the cursor's loop with the one around it
    swapDown @7 :Void;      # agent: the cursor's loop with the one inside it
    split @8 :Int64;        # agent: the cursor's loop, by this factor; any value travels
    merge @9 :Void;         # agent
    unroll @10 :Void;       # agent: toggles the annotation on the cursor's loop
    vectorize @11 :Void;    # agent: toggles the annotation on the cursor's loop
    undo @12 :Void;         # agent: the last action that was not undone
    dummy @13 :Void;        # agent: nothing
    mergeAll @14 :Void;     # agent: from the top until nothing merges
  }
}

struct Source {
  # What to schedule: never code, a path or a URL to fetch.
  union {
    none @0 :Void;  # refused
    uri @1 :Text;   # "benchmark://mm-v0/mm64_64_64"; at most 4,096 bytes
    ir @2 :Text;    # a whole program in loop_tool's IR text; bounded by the job's size
  }
}

enum RuleSet {
  structural @0;   # whatever the tree admits
  loopNest @1;     # what the original admitted
  loopNest58 @2;   # the older rules that go with the 58-float features
}

enum OnIllegal {
  reject @0;  # an illegal action fails the job: INVALID_ACTION with its index
  skip @1;    # an illegal action is skipped
}

enum Dialect {
  ofBenchmark @0;  # the benchmark's own
  simple @1;       # one that differs from the benchmark's own fails the job: INVALID_BENCHMARK
  agent @2;
}

enum DeviceRequest {
  byBenchmark @0;  # the benchmark's own target
  cpu @1;
  cuda @2;
  any @3;
}

enum Freshness {
  storedMayAnswer @0;  # a stored result of equal key may answer
  measureAnew @1;      # measure it, whatever is stored
}

enum CacheState {
  warm @0;
  cold @1;
}

enum ProfileLevel {
  none @0;   # a figure
  roots @1;  # where the time goes, instead of a figure (docs/PROFILE.md)
  loops @2;
  lines @3;
}

struct JobSpec {
  # One question: how fast is this benchmark after these actions, under these conditions? At most
  # 384 KiB encoded, so that an outcome, which repeats the question, always fits one message.
  source @0 :Source;
  actions @1 :List(Action);    # in order; at most 1,024, else LIMIT_ACTIONS
  rules @2 :RuleSet;
  onIllegal @3 :OnIllegal;
  mergeAllFirst @4 :Bool;      # merge from the top until nothing merges, before the first action
  dialect @5 :Dialect;
  device @6 :DeviceRequest;
  freshness @7 :Freshness;
  tag @8 :Text;                # the client's own JSON text, returned unchanged; empty: none; <= 64 KiB

  # None of these is ever ignored. docs/PROTOCOL.md, "Whose turn it is", describes how they affect the
  # order of jobs. A value out of its range fails the job: MALFORMED.
  priority @9 :Int32;          # higher runs first, among one client's jobs; -100 to 100
  threads @10 :UInt32 = 1;     # the most that the kernel may use
  cache @11 :CacheState;       # state of the caches when a timed run starts
  labels @12 :List(Text);      # a worker must carry all of them; at most 64 of 256 bytes
  affinity @13 :Text;          # jobs of equal affinity run on one worker; empty: none; <= 256 bytes
  precision @14 :Float64;      # wanted relative half-width of the interval, 0.01 is 1 %; 0: the default
  budgetMs @15 :Float64;       # milliseconds of timing the job may use; 0: the default
  cutAboveNs @16 :UInt64;      # stop timing, with CUT, once it is slower than this; 0: never
  deadlineS @17 :Float64;      # seconds from acceptance until EXPIRED; 0: none
  maxAgeS @18 :Float64;        # greatest age of a stored result, seconds; 0: any age
  minGrade @19 :UInt8;         # the worst grade that is a figure: 1 A, 2 B, 3 C; 0: any
  # Of a program (docs/LLVM.md); any other job that has some fails: MALFORMED.
  passes @20 :List(Text);      # in order; at most 1,024 of 512 bytes, else LIMIT_ACTIONS or MALFORMED
  observe @21 :List(Text);     # names of observations; at most 32 of 64 bytes; none: IrInstructionCount
  # Since 1.2. Of a loop schedule; any other job that has one fails: MALFORMED.
  profile @22 :ProfileLevel;
  # Float64 fields: not-a-number and infinities are refused.
}
