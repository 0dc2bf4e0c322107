#pragma once
// ForEachField: the optional fields of a JobSpec, each once. Job lines, the text of a stored job,
// the digest of a submission and the options of `loopfleet eval` go through it; Python takes job
// lines. A new field: a member of JobSpec, a row here, and in schema/ and wire/codec/job_codec.cc.

#include <cstdint>
#include <string_view>

#include "common/job/job_spec.h"
#include "common/job/task_kind.h"

namespace loopfleet {

inline constexpr std::string_view kTagField = "tag";

// The kinds of job that a field means something for.
enum class FieldScope : std::uint8_t { kAll, kLoops, kTimed, kPasses };

struct JobField {
  std::string_view name;
  std::uint8_t number;  // in the digest of a submission; never changes
  std::string_view help;
  FieldScope scope = FieldScope::kTimed;

  constexpr bool IsFor(TaskKind kind) const {
    return scope == FieldScope::kAll ||
           (scope == FieldScope::kLoops &&
            (kind == TaskKind::kLoopSchedule || kind == TaskKind::kProfile)) ||
           (scope == FieldScope::kTimed && kind == TaskKind::kLoopSchedule) ||
           (scope == FieldScope::kPasses && kind == TaskKind::kPasses);
  }
};

// visit(field, value of each of `specs`). The tag is among them: it has a column of its own in the
// store, and is any JSON in a job line.
template <class Visitor, class... Specs>
void ForEachField(Visitor&& visit, Specs&... specs) {
  // By position, so that this does not compile when JobSpec grows.
  [[maybe_unused]] const auto complete = [](const JobSpec& spec) {
    [[maybe_unused]] const auto& [source, actions, passes, observe, rules, on_illegal,
                                  merge_all_first, dialect, device, freshness, tag, priority,
                                  threads, cache, labels, affinity, precision, budget_ms,
                                  cut_above_ns, deadline_s, max_age_s, min_grade, profile] = spec;
  };
  visit(JobField{"rules", 3, "which actions are legal", FieldScope::kLoops}, specs.rules...);
  visit(JobField{"on_illegal", 4, "what an illegal action does", FieldScope::kLoops},
        specs.on_illegal...);
  visit(
      JobField{"merge_all_first", 5, "merge all loops before the first action", FieldScope::kLoops},
      specs.merge_all_first...);
  visit(JobField{"dialect", 6, "must be the benchmark's", FieldScope::kLoops}, specs.dialect...);
  visit(JobField{"device", 7, "device to measure on", FieldScope::kAll}, specs.device...);
  visit(JobField{"fresh", 8, "measure even if the store knows the answer", FieldScope::kAll},
        specs.freshness...);
  visit(JobField{kTagField, 9, "JSON, returned unchanged", FieldScope::kAll}, specs.tag...);
  visit(JobField{"priority", 10, "higher first, among your own jobs", FieldScope::kAll},
        specs.priority...);
  visit(JobField{"threads", 11, "threads that the kernel may use", FieldScope::kLoops},
        specs.threads...);
  visit(JobField{"cache", 12, "what the caches hold when a timed run starts"}, specs.cache...);
  visit(JobField{"labels", 13, "labels that the worker must carry", FieldScope::kAll},
        specs.labels...);
  visit(JobField{"affinity", 14, "jobs with the same text run on one worker", FieldScope::kAll},
        specs.affinity...);
  visit(JobField{"precision", 15,
                 "stop as soon as the interval is this narrow, half of it, relative: 0.01 is 1 %"},
        specs.precision...);
  visit(JobField{"budget_ms", 16, "milliseconds that timing may take"}, specs.budget_ms...);
  visit(JobField{"cut_above_ns", 17,
                 "stop timing, with CUT and no time, once a run surely takes longer"},
        specs.cut_above_ns...);
  visit(JobField{"deadline_s", 18, "seconds from acceptance until it is EXPIRED", FieldScope::kAll},
        specs.deadline_s...);
  visit(JobField{"max_age_s", 19, "seconds that a stored result may be old", FieldScope::kAll},
        specs.max_age_s...);
  visit(JobField{"min_grade", 20, "fail rather than give a figure of a worse grade"},
        specs.min_grade...);
  visit(JobField{"passes", 21, "LLVM passes to run, for a program", FieldScope::kPasses},
        specs.passes...);
  visit(JobField{"observe", 22, "what to observe of the program after its passes",
                 FieldScope::kPasses},
        specs.observe...);
  visit(JobField{"profile", 23,
                 "say where the time goes, by roots, loops or lines, instead of a figure",
                 FieldScope::kLoops},
        specs.profile...);
}

}  // namespace loopfleet
