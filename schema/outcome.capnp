@0xd6ebc56d5d1c444b;
# Outcomes of jobs. Evaluations and outcomes travel as columns: primitive lists of equal length, one
# entry for each row, so that a scripting language reads a page with a few array views. Values that
# rarely differ between rows (conditions, programs, names) are in a table that rows refer to by index.
# Grows by adding only (see job.capnp). A column added later may be empty: the sender does not know it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("loopfleet::schema");
using Job = import "job.capnp";

struct Failure {
  code @0 :UInt16;              # numbers of common/job/failure.h; 0 refused, unknown ones UNSUPPORTED
  message @1 :Text;             # one line about this case; at most 4,096 bytes
  actionIndex @2 :Int64 = -1;   # 0-based, of the action to blame; -1: none. Others below 0 refused
  signal @3 :Int32;             # RUN_CRASH: the signal's number; else 0
}

enum DeviceKind {
  cpu @0;
  cuda @1;
}

struct HardwareFacts {
  # The hardware of a measurement. Texts of at most 512 bytes; empty or 0: the host does not tell.
  device @0 :DeviceKind;
  hardwareClass @1 :Text;    # results are shared within a class
  model @2 :Text;
  isa @3 :Text;              # "avx512", "avx2", "baseline", "neon"
  microcode @4 :Text;
  clockMhz @5 :Float64;      # finite, not below 0; the reference clock that times are stated at
  physicalCores @6 :UInt32;
  logicalCores @7 :UInt32;
  l1dBytes @8 :UInt64;       # of one core
  l2Bytes @9 :UInt64;
  l3Bytes @10 :UInt64;
  memoryBytes @11 :UInt64;
  host @12 :Text;
  kernel @13 :Text;          # operating system and its release
  # Peaks of the device, measured at the worker's start; 0: not measured. Finite, none below 0.
  peakFlopPerSecond @14 :Float64;    # float32 multiply-adds, one thread
  readBytesPerSecond @15 :Float64;   # from memory, one thread
  triadBytesPerSecond @16 :Float64;  # a[i] = b[i] + s * c[i] in memory, one thread
}

struct CompilerFacts {
  # The compiler of a kernel. Texts of at most 512 bytes.
  llvm @0 :Text;       # "19.1.7"
  tier @1 :Text;       # "general"
  revision @2 :Text;   # of the lowering
}

struct Conditions {
  # The conditions of a measurement.
  hardware @0 :HardwareFacts;
  compiler @1 :CompilerFacts;
  threads @2 :UInt32 = 1;
  cache @3 :Job.CacheState;
  policy @4 :Text;      # of measurement; at most 512 bytes
  isolation @5 :Text;   # of the kernel; at most 512 bytes
}

struct TextColumn {
  # One text for each row: row i is bytes[offsets[i] .. offsets[i + 1]).
  offsets @0 :List(UInt32);  # rows + 1 entries, ascending from 0 to the length of bytes
  bytes @1 :Data;            # UTF-8
}

struct RowFailure {
  row @0 :UInt32;
  failure @1 :Failure;
}

struct RowNotes {
  row @0 :UInt32;
  notes @1 :List(Text);  # at most 256 of 64 bytes
}

struct RowDeviceState {
  # Readings of a GPU's sensors while it timed a kernel. Finite, none below 0; 0: not told.
  row @0 :UInt32;
  temperatureC @1 :Float64;      # the highest reading
  powerW @2 :Float64;            # the highest reading
  memoryClockMhz @3 :Float64;    # right after the timing
  throttleReasons @4 :UInt64;    # all that occurred: bits of nvmlClocksThrottleReasons
}

struct ObservedValue {
  name @0 :Text;  # at most 64 bytes; no two of a row are equal
  union {
    number @1 :Float64;         # finite, as are those of the list
    numbers @2 :List(Float64);
    text @3 :Text;
    blob @4 :Blob;              # since 1.4
  }
}

struct Blob {
  # Bytes that the coordinator keeps for a time: getBlob brings them.
  sha256 @0 :Text;    # 64 lower-case hexadecimal digits
  bytes @1 :UInt64;   # 1 to 16 MiB
}

struct RowObserved {
  # The verdict on a job that is not timed (common/job/task.h).
  row @0 :UInt32;
  values @1 :List(ObservedValue);  # at most 64, of 512 KiB together
}

struct RowThinned {
  # Retention removed samples of an old row. The figures computed from them stay.
  row @0 :UInt32;
  samplesBefore @1 :UInt32;      # at most 4,096, and more than the row has
  acceptedBefore @2 :UInt32;     # of them, accepted
}

enum Grade {
  a @0;  # half-width of the interval within 1 % of the median, and two rounds agree
  b @1;  # within 5 %
  c @2;  # wider
}

struct EvaluationColumns {
  # `rows` evaluations. Each list has one entry for each row unless it says otherwise.
  rows @0 :UInt32;                      # at most 1,000
  status @1 :List(UInt16);              # 0: measured; 65535: observed, which older readers refuse;
                                        # else the failure's code

  # Nanoseconds per iteration, over the accepted samples. Any other row has not-a-number in
  # each (another value is refused); a measured row has finite values, elapsed and elapsedMin above 0.
  elapsed @2 :List(Float64);            # median
  elapsedLow @3 :List(Float64);         # order-statistic interval round the median
  elapsedHigh @4 :List(Float64);
  elapsedMin @5 :List(Float64);
  elapsedMean @6 :List(Float64);
  spread @7 :List(Float64);             # (high - low) / (2 * median), no unit

  grade @8 :List(UInt8);                # numbers of Grade; 0 in a failed row
  iterationsPerSample @9 :List(UInt64); # iterations in each timed batch; 0 in a failed row
  sampleOffsets @10 :List(UInt32);      # rows + 1: row i has samples [offsets[i], offsets[i + 1])
  samples @11 :List(Float64);           # nanoseconds per iteration, finite; at most 4,096 for one row
  sampleFlags @12 :Data;                # one byte for each sample: bit 0 contended, bit 1 preempted,
                                        # bit 2 throttled by heat or power, bit 3 of a round that
                                        # disagrees with the rounds that count

  treeKeyKnown @13 :List(Bool);         # whether the actions could be replayed
  treeKeys @14 :Data;                   # 16 bytes for each row; zeros: not known
  flopCount @15 :List(UInt64);          # floating-point operations of one iteration; 0: not known
  conditions @16 :List(UInt32);         # 1-based index into conditionsTable; 0: no worker had the job
  scratchBytes @17 :List(UInt64);       # intermediates; inputs and outputs not counted
  codeHash @18 :TextColumn;             # hex digest of the object code; empty: none was made

  # Nanoseconds spent in each stage; 0: not reached. None is below 0.
  queueNs @19 :List(Int64);
  replayNs @20 :List(Int64);
  compileNs @21 :List(Int64);
  verifyNs @22 :List(Int64);
  measureNs @23 :List(Int64);
  storeNs @24 :List(Int64);

  conditionsTable @25 :List(Conditions);
  failures @26 :List(RowFailure);       # one for each row whose status is not 0, by ascending row
  noEffect @27 :List(RowNotes);         # annotations without effect, or followed in part; ascending

  # Clock of the core right before and right after the timing; 0: not measured. Empty: an older sender.
  clockBeforeMhz @28 :List(Float64);
  clockAfterMhz @29 :List(Float64);

  # One for each row measured on a device with sensors; by ascending row.
  deviceStates @30 :List(RowDeviceState);

  # One for each measured row with removed samples; by ascending row. None in reports.
  thinned @31 :List(RowThinned);

  # Rows whose figure is that of a kernel with the same machine code, measured by the same worker;
  # ascending. An older reader sees measured rows.
  sameCode @32 :List(UInt32);

  # Rows of grade D, whose grade above is c; ascending. An older reader sees grade C.
  gradeD @33 :List(UInt32);

  observed @34 :List(RowObserved);      # one for each observed row, by ascending row
}

enum OutcomeSource {
  measured @0;   # a worker evaluated this job
  stored @1;     # an equal job had been answered before
  coalesced @2;  # an equal job was under way
}

struct OutcomeColumns {
  # Outcomes of one batch, which the enclosing message names.
  evaluations @0 :EvaluationColumns;    # gives the number of rows
  index @1 :List(UInt32);               # of the job in its batch
  sequence @2 :List(UInt64);            # 1, 2, 3 ... in the order in which the batch's jobs finished
  source @3 :List(UInt8);               # numbers of OutcomeSource
  attempts @4 :List(UInt32);            # times the job was leased
  finishedAt @5 :List(Int64);           # nanoseconds since 1970-01-01 UTC, by the coordinator's clock
  worker @6 :List(UInt32);              # 1-based index into workerTable; 0: none
  benchmark @7 :List(UInt32);           # 0-based index into benchmarkTable
  actionOffsets @8 :List(UInt32);       # rows + 1: row i has actions [offsets[i], offsets[i + 1])
  actions @9 :List(Job.Action);         # as submitted
  tag @10 :TextColumn;                  # as submitted

  workerTable @11 :List(Text);          # names of at most 512 bytes
  benchmarkTable @12 :List(Job.Source); # as submitted
}
