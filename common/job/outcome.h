#pragma once
// Evaluation: what a worker says about a job. Outcome: what becomes of it: exactly one for each
// job, immutable, equal for every reader.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "common/job/stage.h"
#include "common/looptree/tree/key.h"

namespace loopfleet {

// The conditions of a measurement: with the tree, the full tuple that a stored result is looked up
// by.
struct Conditions {
  HardwareFacts hardware;
  CompilerFacts compiler;
  std::uint32_t threads = 1;
  CacheState cache = CacheState::kWarm;
  std::string policy;     // of measuring: "fixed15x60us" (docs/MEASUREMENT.md)
  std::string isolation;  // how the kernel was kept apart: "process+rlimits"
  friend bool operator==(const Conditions&, const Conditions&) = default;
};

struct Evaluation {
  std::variant<Measurement, Failure> verdict;
  // Known once the actions were replayed.
  std::optional<looptree::TreeKey> tree_key;
  std::uint64_t flop_count = 0;  // of one run
  // Known once a worker had the job.
  std::optional<Conditions> conditions;
  std::uint64_t scratch_bytes = 0;  // of intermediates, beside inputs and outputs
  std::string code_hash;            // hex digest of the object code; "" if none was made
  std::vector<std::string>
      no_effect;  // annotations that changed nothing, for example "L3 vectorize"
  StageDurations stages;
  friend bool operator==(const Evaluation&, const Evaluation&) = default;

  bool ok() const { return std::holds_alternative<Measurement>(verdict); }
  const Measurement& measurement() const { return std::get<Measurement>(verdict); }
  const Failure& failure() const { return std::get<Failure>(verdict); }
};

enum class OutcomeSource : std::uint8_t {
  kMeasured,   // by a worker, for this job
  kStored,     // an equal request had been answered before
  kCoalesced,  // an equal request was under way; both got its answer
};
std::string_view OutcomeSourceName(OutcomeSource source);  // "measured"

struct Outcome {
  JobId job;
  std::uint64_t sequence = 0;  // 1, 2, 3 ... in the order in which the batch's jobs finished
  OutcomeSource source = OutcomeSource::kMeasured;
  std::uint32_t attempts = 0;  // times the job was leased; 0 if it never had to be
  std::string worker;          // name of the one that measured; "" if none did
  WallTime finished_at{};
  Evaluation evaluation;
  // As submitted, so that an outcome can be read by itself.
  looptree::Source benchmark;
  std::vector<looptree::Action> actions;
  std::string tag;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// The name that metrics count an outcome under: "ok", or the failure code's name.
std::string_view OutcomeLabel(const Evaluation& evaluation);

}  // namespace loopfleet
