#pragma once
// ScheduleError: loopfleet.errors.ScheduleError, raised from C++.

#include <nanobind/nanobind.h>

#include <string>

#include "common/looptree/program/rejection.h"

namespace loopfleet::python {

// Defines set_schedule_error, which loopfleet.errors calls with the class.
void BindScheduleError(nanobind::module_& module);

[[noreturn]] void RaiseSchedule(
    const std::string& message,
    looptree::RejectionCode code = looptree::RejectionCode::kInvalidAction);

template <class T>
T OrRaiseSchedule(looptree::Checked<T> checked) {
  if (!checked) RaiseSchedule(checked.error().message, checked.error().code);
  return *std::move(checked);
}

}  // namespace loopfleet::python
