#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/profile_text.h"
#include "client/python/bindings.h"
#include "client/python/conversion.h"
#include "client/python/job_binding.h"
#include "common/base/suggestion.h"
#include "common/job/profile.h"
#include "common/job/profile_rows.h"
#include "common/job/task.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

Job Profiled(const Job& job, const std::string& level) {
  const auto named = ValueNamed<ProfileLevel>(level);
  const TaskKind kind = TaskOf(job.spec.source).kind;
  if (!named || *named == ProfileLevel::kNone) {
    constexpr std::array<std::string_view, 3> kLevels = {"roots", "loops", "lines"};
    Raise({.code = FailureCode::kMalformed,
           .message = fmt::format("'level' must be {}, not '{}'{}", fmt::join(kLevels, " or "),
                                  level, NearestSuffix(level, kLevels))});
  }
  if (kind != TaskKind::kLoopSchedule) {
    Raise({.code = FailureCode::kMalformed,
           .message = fmt::format("a job of kind {}: only loop schedules have a profile",
                                  EnumName(kind))});
  }
  return {.spec = AsProfile(job.spec, *named)};
}

Profile ProfileIn(const OutcomeRow& outcome) {
  const bool is_observed = outcome.ok() && !outcome.is_timed();
  auto profile = is_observed ? ProfileOf(outcome.figures().observed_of(outcome.row)) : std::nullopt;
  if (!profile) throw nb::value_error("the outcome is no profile");
  return *std::move(profile);
}

nb::dict ToDict(const ProfileRow& row) {
  const ProfileLine& line = row.line;
  nb::dict dict;
  dict["ref"] = line.place.ref;
  dict["part"] = std::string(EnumName(line.place.part));
  dict["text"] = row.text;
  dict["share"] = line.share;
  dict["low"] = line.low;
  dict["high"] = line.high;
  dict["total"] = row.total;
  dict["cycles"] = line.cycles;
  dict["entries"] = line.entries;
  dict["samples"] = line.samples;
  dict["fused_into"] = line.fused_into;
  dict["known"] = row.is_known;
  return dict;
}

}  // namespace

void BindProfiles(nb::module_& module) {
  module.def("profiled_job", &Profiled, "job"_a, "level"_a,
             "The job that profiles its tree: by roots, loops or lines.");
  module.def(
      "profile_rows",
      [](const Job& job, const OutcomeRow& outcome) {
        nb::list rows;
        for (const auto& row : ProfileRows(job.spec, ProfileIn(outcome))) {
          rows.append(ToDict(row));
        }
        return rows;
      },
      "job"_a, "outcome"_a, "The fields of ProfileLine, for each line of a profile.");
  module.def(
      "profile_text",
      [](const Job& job, const OutcomeRow& outcome) {
        return client::ProfileText(job.spec, ProfileIn(outcome));
      },
      "job"_a, "outcome"_a, "As `loopfleet job profile` prints it.");
}

}  // namespace loopfleet::python
