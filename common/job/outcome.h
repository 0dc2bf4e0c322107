#pragma once
// Evaluation: a worker's report on a job. Outcome: the job's final result. Each job gets exactly
// one outcome, which never changes and is the same for every reader.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/enum_names.h"
#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "common/job/observed.h"
#include "common/job/resolved_task.h"
#include "common/job/stage.h"

namespace loopfleet {

// The conditions of a measurement. With the subject, they identify a stored result.
struct Conditions {
  HardwareFacts hardware;
  CompilerFacts compiler;
  std::uint32_t threads = 1;
  CacheState cache = CacheState::kWarm;
  std::string policy;     // of measurement: "agreed2to5x5to20x60us-v6" (docs/MEASUREMENT.md)
  std::string isolation;  // of the kernel: "process+rlimits"
  friend bool operator==(const Conditions&, const Conditions&) = default;
};

struct Evaluation {
  std::variant<Measurement, Failure, Observed> verdict;
  // Known once the job is resolved.
  std::optional<SubjectKey> subject;
  std::uint64_t flop_count = 0;  // of one iteration
  // Known once a worker has had the job.
  std::optional<Conditions> conditions;
  std::uint64_t scratch_bytes = 0;  // intermediates; inputs and outputs not counted
  std::string code_hash;            // hex digest of the object code; "" if none was made
  // Annotations that changed nothing ("L3 vectorize") or were followed in part ("L3 unroll: 16 of
  // 256").
  std::vector<std::string> notes;
  // The figure is that of a kernel with the same machine code, measured before by this worker, or
  // by another one of its class and found in the store.
  bool same_code = false;
  StageDurations stages;
  friend bool operator==(const Evaluation&, const Evaluation&) = default;

  bool ok() const { return !std::holds_alternative<Failure>(verdict); }
  const Failure& failure() const { return std::get<Failure>(verdict); }
  // Which of the two it is follows from the job's kind (TaskInfo::is_timed).
  bool is_timed() const { return std::holds_alternative<Measurement>(verdict); }
  const Measurement& measurement() const { return std::get<Measurement>(verdict); }
  const Observed& observed() const { return std::get<Observed>(verdict); }
};

enum class OutcomeSource : std::uint8_t {
  kMeasured,   // a worker evaluated this job
  kStored,     // an equal job had been measured before
  kCoalesced,  // an equal job was under way; both get its answer
};
template <>
struct EnumNames<OutcomeSource> {
  static constexpr std::array kAll = {NamedValue{OutcomeSource::kMeasured, "measured"},
                                      NamedValue{OutcomeSource::kStored, "stored"},
                                      NamedValue{OutcomeSource::kCoalesced, "coalesced"}};
};
inline constexpr std::string_view kSameCodeSource = "same_code";

struct Outcome {
  JobId job;
  std::uint64_t sequence = 0;  // 1, 2, 3 ... in the order in which the batch's jobs finish
  OutcomeSource source = OutcomeSource::kMeasured;
  std::uint32_t attempts = 0;  // times the job was leased; 0: never
  std::string worker;          // name of the measuring worker; "": none
  WallTime finished_at{};
  Evaluation evaluation;
  // As submitted, so that an outcome can be read by itself.
  looptree::Source benchmark;
  std::vector<looptree::Action> actions;
  std::string tag;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Whether one of Evaluation::notes says that an annotation was followed in part.
bool IsPartial(std::string_view note);

// For people: the source, or "same_code" for a measured outcome with that flag.
std::string_view SourceText(const Outcome& outcome);

// The name that metrics count an outcome under: "ok", or the failure code's name.
std::string_view OutcomeLabel(const Evaluation& evaluation);

// Bytes of memory that samples, texts, observed values, program and actions take: what makes one
// of these larger than another.
std::size_t BytesOf(const Evaluation& evaluation);
std::size_t BytesOf(const Outcome& outcome);

}  // namespace loopfleet
