#include "common/job/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/result.h"
#include "common/job/job_fields.h"
#include "common/job/loop_schedule.h"

namespace loopfleet {
namespace {

using Numbers = std::vector<double>;

constexpr double kNotFused = -1;

// The columns of a profile's lines, each with how a line gives and takes its value. Set refuses
// what no worker of this version says.
struct Column {
  std::string_view name;
  double (*get)(const ProfileLine& line);
  bool (*set)(ProfileLine& line, double value);
};

bool IsWhole(double value, double most) {
  return value >= 0 && value <= most && value == std::floor(value);
}

template <double ProfileLine::* member>
Column Plain(std::string_view name) {
  return {.name = name,
          .get = [](const ProfileLine& line) { return line.*member; },
          .set =
              [](ProfileLine& line, double value) {
                line.*member = value;
                return std::isfinite(value) && value >= 0;
              }};
}

constexpr double kMostRef = 1 << 20;  // beyond any limit on trees

const std::vector<Column>& Columns() {
  static const auto* const columns = new std::vector<Column>{
      {.name = "ref",
       .get = [](const ProfileLine& line) { return static_cast<double>(line.place.ref); },
       .set =
           [](ProfileLine& line, double value) {
             if (!IsWhole(value, kMostRef)) return false;
             line.place.ref = static_cast<looptree::TreeRef>(value);
             return true;
           }},
      {.name = "part",
       .get = [](const ProfileLine& line) { return static_cast<double>(line.place.part); },
       .set =
           [](ProfileLine& line, double value) {
             if (!IsWhole(value, static_cast<double>(ProfilePart::kOutside))) return false;
             line.place.part = static_cast<ProfilePart>(value);
             return true;
           }},
      Plain<&ProfileLine::share>("share"),
      Plain<&ProfileLine::low>("low"),
      Plain<&ProfileLine::high>("high"),
      Plain<&ProfileLine::cycles>("cycles"),
      Plain<&ProfileLine::entries>("entries"),
      Plain<&ProfileLine::samples>("samples"),
      {.name = "fused_into",
       .get =
           [](const ProfileLine& line) {
             return line.fused_into ? static_cast<double>(*line.fused_into) : kNotFused;
           },
       .set =
           [](ProfileLine& line, double value) {
             if (value == kNotFused) return true;
             if (!IsWhole(value, kMostRef)) return false;
             line.fused_into = static_cast<looptree::TreeRef>(value);
             return true;
           }},
  };
  return *columns;
}

template <class T>
const T* ValueOf(const Observed& observed, std::string_view name) {
  const auto found = observed.values.find(name);
  return found == observed.values.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

Observed ToObserved(const Profile& profile) {
  Observed observed;
  observed.values["level"] = std::string(EnumName(profile.level));
  observed.values["overhead"] = profile.overhead;
  observed.values["run_ns"] = profile.run_ns;
  observed.values["note"] = profile.note;
  observed.values["code_hash"] = profile.code_hash;
  for (const Column& column : Columns()) {
    Numbers numbers;
    for (const ProfileLine& line : profile.lines) numbers.push_back(column.get(line));
    observed.values[std::string(column.name)] = std::move(numbers);
  }
  return observed;
}

std::optional<Profile> ProfileOf(const Observed& observed) {
  const auto* level = ValueOf<std::string>(observed, "level");
  const auto* overhead = ValueOf<double>(observed, "overhead");
  const auto* run_ns = ValueOf<double>(observed, "run_ns");
  const auto* note = ValueOf<std::string>(observed, "note");
  const auto* code_hash = ValueOf<std::string>(observed, "code_hash");
  const auto* refs = ValueOf<Numbers>(observed, "ref");
  if (level == nullptr || overhead == nullptr || run_ns == nullptr || note == nullptr ||
      code_hash == nullptr || refs == nullptr || refs->size() > kMostProfileLines) {
    return std::nullopt;
  }
  const auto named = ValueNamed<ProfileLevel>(*level);
  if (!named || *named == ProfileLevel::kNone) return std::nullopt;
  Profile profile{.level = *named,
                  .overhead = *overhead,
                  .run_ns = *run_ns,
                  .note = *note,
                  .code_hash = *code_hash};
  profile.lines.resize(refs->size());
  for (const Column& column : Columns()) {
    const auto* numbers = ValueOf<Numbers>(observed, column.name);
    if (numbers == nullptr || numbers->size() != profile.lines.size()) return std::nullopt;
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      if (!column.set(profile.lines[i], (*numbers)[i])) return std::nullopt;
    }
  }
  return profile;
}

JobSpec AsProfile(JobSpec spec, ProfileLevel level) {
  static const JobSpec kDefaults;
  ForEachField(
      [](const JobField& field, auto& value, const auto& when_unset) {
        if (!field.IsFor(TaskKind::kProfile)) value = when_unset;
      },
      spec, kDefaults);
  spec.profile = level;
  return spec;
}

SubjectKey ProfileSubject(const SubjectKey& tree, ProfileLevel level) {
  return ContentKey::Of(fmt::format("profile of {} by {}", tree.ToString(), EnumName(level)));
}

std::expected<ResolvedTask, Failure> ResolveProfile(const JobSpec& spec) {
  LF_TRY(ResolvedTask resolved, ResolveLoopSchedule(spec));
  const bool has_gpu = spec.profile == ProfileLevel::kRoots;
  if (!has_gpu && resolved.placement == Placement::kCuda) {
    return std::unexpected(
        Failure{.code = FailureCode::kUnsupported,
                .message = fmt::format("field 'profile': kernels on a GPU are profiled by roots "
                                       "only, not by {}; give '{}', or a 'device' for cpu",
                                       EnumName(spec.profile), EnumName(ProfileLevel::kRoots))});
  }
  return ResolvedTask{.subject = ProfileSubject(resolved.subject, spec.profile),
                      .placement = has_gpu ? resolved.placement : Placement::kCpu};
}

std::optional<std::string> WhyNoProfile(const JobSpec& spec, const Observed& observed) {
  const auto profile = ProfileOf(observed);
  if (!profile) return "its values are no profile";
  if (profile->level == spec.profile) return std::nullopt;
  return fmt::format("it is a profile of {}, the job asked for {}", EnumName(profile->level),
                     EnumName(spec.profile));
}

}  // namespace loopfleet
