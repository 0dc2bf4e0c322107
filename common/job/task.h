#pragma once
// TaskInfo: what a job asks for. The benchmark decides the kind, by its scheme, so a job of any
// kind is a benchmark, what to do with it, and conditions; a loop schedule with the field `profile`
// is a profile. One table holds all that coordinator, store and clients need to know of a kind; a
// worker that runs it says so in its hello. A new kind: an enumerator and a name in task_kind.h, a
// row in task.cc, and a part of the worker.

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/job/failure.h"
#include "common/job/job_spec.h"
#include "common/job/observed.h"
#include "common/job/resolved_task.h"
#include "common/job/task_kind.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet {

struct TaskInfo {
  TaskKind kind;
  // What its benchmarks start with: "probe://". None: all others are of this kind.
  std::span<const std::string_view> prefixes;
  std::string_view example;                            // a benchmark
  ProfileLevel example_profile = ProfileLevel::kNone;  // of a job of this kind
  std::string_view label;  // that its workers carry; "": all workers run it
  // Whether its verdict is a Measurement; otherwise it is Observed.
  bool is_timed;
  // Whether a verdict answers equal jobs; otherwise every job is run.
  bool answers_equal_jobs;
  // A pure function of the benchmark, the actions, the device and the fields that a replay depends
  // on, with the same result everywhere. Fails with the job's outcome.
  std::expected<ResolvedTask, Failure> (*resolve)(const JobSpec& spec);
  // Why observed values are no answer to the job; nullopt: they are. Null: any are.
  std::optional<std::string> (*why_no_answer)(const JobSpec& spec,
                                              const Observed& observed) = nullptr;
};

std::span<const TaskInfo> TaskTable();
const TaskInfo& TaskOf(const JobSpec& spec);
// What the benchmark decides: never the kind profile.
const TaskInfo& TaskOf(const looptree::Source& benchmark);
const TaskInfo& TaskOf(TaskKind kind);

// ValidateSpec, and MALFORMED for a field that is set and means nothing for a job of this kind.
std::optional<Failure> ValidateJob(const JobSpec& spec);

}  // namespace loopfleet
