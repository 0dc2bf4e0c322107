#pragma once
// ForEachField: the optional fields of a JobSpec, each once. Job lines, the message, its bounds,
// the text of a stored job, the digest of a submission and the options of `loopfleet eval` go
// through it; Python takes job lines. A new field: a member of JobSpec, a row here, a field of the
// schema and its accessors in common/wire/codec/job_codec.cc.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/job/job_spec.h"
#include "common/job/observed.h"
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
  std::size_t most_bytes = 0;  // of a text, or of each text of a list
  std::size_t most = 0;        // texts of a list

  constexpr bool IsFor(TaskKind kind) const {
    return scope == FieldScope::kAll ||
           (scope == FieldScope::kLoops &&
            (kind == TaskKind::kLoopSchedule || kind == TaskKind::kProfile)) ||
           (scope == FieldScope::kTimed && kind == TaskKind::kLoopSchedule) ||
           (scope == FieldScope::kPasses && kind == TaskKind::kPasses);
  }
};

// The field that this member of JobSpec holds.
template <auto kMember>
struct FieldOf : JobField {};

// visit(field, value of each of `specs`), where the field is a FieldOf. The tag is among them: it
// has a column of its own in the store, and is any JSON in a job line.
template <class Visitor, class... Specs>
void ForEachField(Visitor&& visit, Specs&... specs) {
  using enum FieldScope;
  // By position, so that this does not compile when JobSpec grows.
  [[maybe_unused]] const auto complete = [](const JobSpec& spec) {
    [[maybe_unused]] const auto& [source, actions, passes, observe, rules, on_illegal,
                                  merge_all_first, dialect, device, freshness, tag, priority,
                                  threads, cache, labels, affinity, precision, budget_ms,
                                  cut_above_ns, deadline_s, max_age_s, min_grade, profile] = spec;
  };
  const auto row = [&]<auto kMember>(const FieldOf<kMember>& field) {
    visit(field, (specs.*kMember)...);
  };
  using Spec = JobSpec;
  row(FieldOf<&Spec::rules>{{"rules", 3, "which actions are legal", kLoops}});
  row(FieldOf<&Spec::on_illegal>{{"on_illegal", 4, "what an illegal action does", kLoops}});
  row(FieldOf<&Spec::merge_all_first>{
      {"merge_all_first", 5, "merge all loops before the first action", kLoops}});
  row(FieldOf<&Spec::dialect>{{"dialect", 6, "must be the benchmark's", kLoops}});
  row(FieldOf<&Spec::device>{{"device", 7, "device to measure on", kAll}});
  row(FieldOf<&Spec::freshness>{{"fresh", 8, "measure even if the store knows the answer", kAll}});
  row(FieldOf<&Spec::tag>{{kTagField, 9, "JSON, returned unchanged", kAll, kMostTagBytes}});
  row(FieldOf<&Spec::priority>{{"priority", 10, "higher first, among your own jobs", kAll}});
  row(FieldOf<&Spec::threads>{{"threads", 11, "threads that the kernel may use", kLoops}});
  row(FieldOf<&Spec::cache>{{"cache", 12, "what the caches hold when a timed run starts"}});
  row(FieldOf<&Spec::labels>{
      {"labels", 13, "labels that the worker must carry", kAll, kMostLabelBytes, kMostLabels}});
  row(FieldOf<&Spec::affinity>{
      {"affinity", 14, "jobs with the same text run on one worker", kAll, kMostLabelBytes}});
  row(FieldOf<&Spec::precision>{
      {"precision", 15,
       "stop as soon as the interval is this narrow, half of it, relative: 0.01 is 1 %"}});
  row(FieldOf<&Spec::budget_ms>{{"budget_ms", 16, "milliseconds that timing may take"}});
  row(FieldOf<&Spec::cut_above_ns>{
      {"cut_above_ns", 17, "stop timing, with CUT and no time, once a run surely takes longer"}});
  row(FieldOf<&Spec::deadline_s>{
      {"deadline_s", 18, "seconds from acceptance until it is EXPIRED", kAll}});
  row(FieldOf<&Spec::max_age_s>{
      {"max_age_s", 19, "seconds that a stored result may be old; 0: any age", kAll}});
  row(FieldOf<&Spec::min_grade>{
      {"min_grade", 20, "fail rather than give a figure of a worse grade"}});
  row(FieldOf<&Spec::passes>{
      {"passes", 21, "LLVM passes to run, for a program", kPasses, kMostPassBytes, kMostPasses}});
  row(FieldOf<&Spec::observe>{{"observe", 22, "what to observe of the program after its passes",
                               kPasses, kMostObservedNameBytes, kMostObserved}});
  row(FieldOf<&Spec::profile>{
      {"profile", 23, "say where the time goes, by roots, loops or lines, instead of a figure",
       kLoops}});
}

}  // namespace loopfleet
