#include "common/job/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "common/base/check.h"
#include "common/job/job_fields.h"
#include "common/job/loop_schedule.h"
#include "common/job/pass_job.h"
#include "common/job/probe.h"
#include "common/job/profile.h"
#include "common/llvm_passes/program_uri.h"

namespace loopfleet {
namespace {

constexpr std::array<std::string_view, 1> kProbes = {"probe://"};
constexpr auto kPrograms = [] {
  constexpr std::array<std::string_view, 4> kOurs = {
      "generator://", "bitcode://", "benchmark://small-v0/", "benchmark://debian-v0/"};
  std::array<std::string_view, kOurs.size() + passes::kDatasetsElsewhere.size()> all;
  std::ranges::copy(passes::kDatasetsElsewhere, std::ranges::copy(kOurs, all.begin()).out);
  return all;
}();

constexpr std::array kTasks = {
    TaskInfo{.kind = TaskKind::kLoopSchedule,
             .prefixes = {},
             .example = "benchmark://mm-v0/mm64_64_64",
             .label = "",
             .is_timed = true,
             .answers_equal_jobs = true,
             .resolve = ResolveLoopSchedule},
    TaskInfo{.kind = TaskKind::kProbe,
             .prefixes = kProbes,
             .example = kPeaksProbe,
             .label = "kind=probe",
             .is_timed = false,
             .answers_equal_jobs = false,
             .resolve = ResolveProbe,
             .why_no_answer = WhyNoProbe},
    TaskInfo{.kind = TaskKind::kPasses,
             .prefixes = kPrograms,
             .example = "generator://csmith-v0/0",
             .label = "kind=passes",
             .is_timed = false,
             .answers_equal_jobs = true,
             .resolve = ResolvePassJob,
             .why_no_answer = WhyNoAnswer},
    TaskInfo{.kind = TaskKind::kProfile,
             .prefixes = {},
             .example = "benchmark://mm-v0/mm64_64_64",
             .example_profile = ProfileLevel::kLines,
             .label = "kind=profile",
             .is_timed = false,
             .answers_equal_jobs = true,
             .resolve = ResolveProfile,
             .why_no_answer = WhyNoProfile},
};
static_assert(kTasks.size() == EnumNames<TaskKind>::kAll.size());

// Most prefixes begin alike, so their ends are compared first. Every job is asked several times.
bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && text[prefix.size() - 1] == prefix.back() &&
         text.starts_with(prefix);
}

}  // namespace

std::span<const TaskInfo> TaskTable() { return kTasks; }

const TaskInfo& TaskOf(TaskKind kind) {
  const auto& info = kTasks[static_cast<std::size_t>(kind)];
  LF_CHECK(info.kind == kind, "the tasks are not in the order of their kinds");
  return info;
}

const TaskInfo& TaskOf(const JobSpec& spec) {
  const TaskInfo& task = TaskOf(spec.source);
  const bool is_profile =
      spec.profile != ProfileLevel::kNone && task.kind == TaskKind::kLoopSchedule;
  return is_profile ? TaskOf(TaskKind::kProfile) : task;
}

const TaskInfo& TaskOf(const looptree::Source& benchmark) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&benchmark);
  if (uri != nullptr) {
    for (const TaskInfo& task : kTasks) {
      for (const std::string_view prefix : task.prefixes) {
        if (StartsWith(uri->text, prefix)) return task;
      }
    }
  }
  return TaskOf(TaskKind::kLoopSchedule);
}

std::optional<Failure> ValidateJob(const JobSpec& spec) {
  if (auto failure = ValidateSpec(spec)) return failure;
  const TaskInfo& task = TaskOf(spec);
  static const JobSpec kDefaults;
  std::optional<Failure> first;
  ForEachField(
      [&](const JobField& field, const auto& value, const auto& when_unset) {
        if (first || field.IsFor(task.kind) || value == when_unset) return;
        first = Failure{.code = FailureCode::kMalformed,
                        .message = fmt::format("field '{}' means nothing for a job of kind {}: "
                                               "leave it out",
                                               field.name, EnumName(task.kind))};
      },
      spec, kDefaults);
  return first;
}

}  // namespace loopfleet
