#pragma once
// TaskKind: what a job asks for. The benchmark decides it, and whether it is to be profiled
// (task.h).

#include <cstdint>

#include "common/base/enum_names.h"

namespace loopfleet {

enum class TaskKind : std::uint8_t { kLoopSchedule, kProbe, kPasses, kProfile };
template <>
struct EnumNames<TaskKind> {
  static constexpr std::array kAll = {
      NamedValue{TaskKind::kLoopSchedule, "loop_schedule"}, NamedValue{TaskKind::kProbe, "probe"},
      NamedValue{TaskKind::kPasses, "passes"}, NamedValue{TaskKind::kProfile, "profile"}};
};

}  // namespace loopfleet
