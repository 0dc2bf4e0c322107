#include "common/job/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "common/base/check.h"
#include "common/job/job_fields.h"
#include "common/job/loop_schedule.h"
#include "common/job/probe.h"

namespace loopfleet {
namespace {

// Who gets the job, when, and what is returned with it; a probe has nothing else to choose.
constexpr std::array<std::string_view, 7> kFieldsOfProbes = {
    "device", "fresh", "labels", "affinity", "priority", "deadline_s", kTagField};

constexpr std::array kTasks = {
    TaskInfo{.kind = TaskKind::kLoopSchedule,
             .scheme = "",
             .example = "benchmark://mm-v0/mm64_64_64",
             .label = "",
             .is_timed = true,
             .answers_equal_jobs = true,
             .fields = {},
             .resolve = ResolveLoopSchedule},
    TaskInfo{.kind = TaskKind::kProbe,
             .scheme = "probe://",
             .example = kPeaksProbe,
             .label = "kind=probe",
             .is_timed = false,
             .answers_equal_jobs = false,
             .fields = kFieldsOfProbes,
             .resolve = ResolveProbe},
};
static_assert(kTasks.size() == EnumNames<TaskKind>::kAll.size());

}  // namespace

std::span<const TaskInfo> TaskTable() { return kTasks; }

const TaskInfo& TaskOf(TaskKind kind) {
  const auto& info = kTasks[static_cast<std::size_t>(kind)];
  LF_CHECK(info.kind == kind, "the tasks are not in the order of their kinds");
  return info;
}

const TaskInfo& TaskOf(const looptree::Source& benchmark) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&benchmark);
  if (uri != nullptr) {
    for (const TaskInfo& task : kTasks) {
      if (!task.scheme.empty() && uri->text.starts_with(task.scheme)) return task;
    }
  }
  return TaskOf(TaskKind::kLoopSchedule);
}

std::optional<Failure> ValidateJob(const JobSpec& spec) {
  if (auto failure = ValidateSpec(spec)) return failure;
  const TaskInfo& task = TaskOf(spec.source);
  if (task.fields.empty()) return std::nullopt;
  static const JobSpec kDefaults;
  std::optional<Failure> first;
  ForEachField(
      [&](const JobField& field, const auto& value, const auto& when_unset) {
        const bool means_something =
            std::ranges::find(task.fields, field.name) != task.fields.end();
        if (first || means_something || value == when_unset) return;
        first = Failure{.code = FailureCode::kMalformed,
                        .message = fmt::format("field '{}' means nothing for a job of kind {}: "
                                               "leave it out",
                                               field.name, EnumName(task.kind))};
      },
      spec, kDefaults);
  return first;
}

}  // namespace loopfleet
