#include "client/python/schedule_error.h"

#include <nanobind/stl/string.h>

#include "common/job/failure.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

nb::object& Type() {
  static nb::object* type = new nb::object();  // lives as long as the interpreter
  return *type;
}

}  // namespace

void BindScheduleError(nb::module_& module) {
  module.def(
      "set_schedule_error", [](nb::object type) { Type() = std::move(type); }, "type"_a,
      "The exception class for schedules that cannot be.");
}

void RaiseSchedule(const std::string& message, looptree::RejectionCode code) {
  const FailureInfo& info = InfoOf(ToFailure(looptree::Rejection{.code = code}).code);
  nb::object error = Type()(message);
  error.attr("code") = nb::str(info.name.data(), info.name.size());
  PyErr_SetObject(Type().ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace loopfleet::python
