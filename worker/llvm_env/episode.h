#pragma once
// Episode: a sequence of passes over a program, and what is to be observed on the way; and what
// came of it. Step k is the state after the first k passes; step 0 is the program itself.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "common/llvm_passes/observation.h"

namespace loopfleet::worker {

struct Wanted {
  passes::Observation observation;
  // Each at most the number of passes. Observations with a baseline have one value for all steps.
  std::vector<std::uint32_t> steps;
};

struct Episode {
  std::vector<std::string> passes;  // canonical texts (common/llvm_passes/pass_sequence.h)
  std::vector<Wanted> wanted;
};

// Why an episode ended early.
struct PassFailure {
  enum class Reason : std::uint8_t {
    kUnknownPass,     // LLVM cannot read the text
    kCrashed,         // PASS_CRASHED: a signal, an abort, a fatal error of LLVM, an exit
    kBrokeModule,     // PASS_BROKE_MODULE: the verifier rejects what the pass left
    kTimeout,         // of the pass, of the episode, or of the batch
    kOutOfMemory,     // of the process
    kModuleTooLarge,  // the pass made too many instructions
    kForbiddenCall,   // a system call that the sandbox does not allow
    kNoValue,         // the observation has no value of this module
    kNoProcess,       // this worker could not run it
  };
  static constexpr Reason kLastReason = Reason::kNoProcess;

  Reason reason = Reason::kCrashed;
  // 0-based. For a failed observation the last pass before it; none: before any pass, or in a
  // reference pipeline.
  std::optional<std::uint32_t> pass_index;
  std::int32_t signal = 0;  // kCrashed: what ended the process; 0: it exited
  // What happened, and for crashes the end of what LLVM wrote to stderr, at most 2 KiB.
  std::string message;
  friend bool operator==(const PassFailure&, const PassFailure&) = default;
};

// The job's failure: INVALID_ACTION, COMPILE_ERROR, COMPILE_TIMEOUT, COMPILE_OOM, ...
Failure ToFailure(const PassFailure& failure);

struct StepValue {
  passes::Observation observation;
  std::uint32_t step = 0;
  passes::ObservationValue value;
  friend bool operator==(const StepValue&, const StepValue&) = default;
};

struct EpisodeResult {
  // For each pass that ended well: whether it says that it changed the module.
  std::vector<bool> changed;
  // All that were wanted, in the order of `wanted` and of its steps; after a failure only those of
  // the steps before.
  std::vector<StepValue> values;
  std::optional<PassFailure> failure;
  friend bool operator==(const EpisodeResult&, const EpisodeResult&) = default;
};

}  // namespace loopfleet::worker
