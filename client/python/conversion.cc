#include "client/python/conversion.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <exception>

namespace loopfleet::python {
namespace {

namespace nb = nanobind;

// Carries a failure to the translator, which raises JobError for it.
struct RaisedFailure : std::exception {
  explicit RaisedFailure(const Failure& what) : failure(what) {}
  Failure failure;
};

nb::object& JobErrorType() {
  static nb::object* type = new nb::object();  // lives as long as the interpreter
  return *type;
}

void Translate(const std::exception_ptr& pointer, void* /*payload*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const RaisedFailure& raised) {
    const Failure& failure = raised.failure;
    const FailureInfo& info = InfoOf(failure.code);
    const std::string text = failure.message.empty() ? std::string(info.advice) : failure.message;
    nb::object error = JobErrorType()(text);
    error.attr("code") = nb::str(info.name.data(), info.name.size());
    error.attr("retryable") = info.policy.is_retryable;
    error.attr("action_index") =
        failure.action_index ? nb::object(nb::int_(*failure.action_index)) : nb::none();
    PyErr_SetObject(JobErrorType().ptr(), error.ptr());
  }
}

}  // namespace

void BindErrors(nb::module_& module) {
  nb::object& type = JobErrorType();
  type = nb::steal(PyErr_NewExceptionWithDoc(
      "loopfleet._core.JobError",
      "What was asked cannot be done: `code` is one of the failure codes, `action_index` the action"
      "\nto blame or None, `retryable` whether the same may work later.",
      PyExc_ValueError, nullptr));
  type.attr("code") = "";
  type.attr("action_index") = nb::none();
  type.attr("retryable") = false;
  module.attr("JobError") = type;
  nb::register_exception_translator(Translate);
}

void Raise(const Failure& failure) { throw RaisedFailure(failure); }

nb::object ToPython(const client::Json& json) {
  using Type = client::Json::value_t;
  switch (json.type()) {
    case Type::null:
    case Type::discarded: return nb::none();
    case Type::boolean: return nb::bool_(json.get<bool>());
    case Type::number_integer: return nb::int_(json.get<std::int64_t>());
    case Type::number_unsigned: return nb::int_(json.get<std::uint64_t>());
    case Type::number_float: return nb::float_(json.get<double>());
    case Type::string: {
      const auto& text = json.get_ref<const std::string&>();
      return nb::steal(
          PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    }
    case Type::array: {
      nb::list list;
      for (const client::Json& item : json) list.append(ToPython(item));
      return list;
    }
    case Type::object: {
      nb::dict dict;
      for (const auto& [key, value] : json.items()) dict[key.c_str()] = ToPython(value);
      return dict;
    }
    case Type::binary: break;
  }
  return nb::none();
}

Uuid UuidOf(const nb::bytes& bytes) {
  Uuid uuid;
  if (bytes.size() != uuid.bytes.size()) throw nb::value_error("an id has exactly 16 bytes");
  std::memcpy(uuid.bytes.data(), bytes.c_str(), uuid.bytes.size());
  return uuid;
}

nb::bytes BytesOf(std::string_view bytes) { return nb::bytes(bytes.data(), bytes.size()); }

looptree::Source SourceOf(std::string benchmark, std::string ir) {
  if (benchmark.empty() == ir.empty()) {
    Raise({.code = FailureCode::kMalformed,
           .message = "a job needs either 'benchmark' or 'ir', and not both"});
  }
  if (!ir.empty()) return looptree::IrText{std::move(ir)};
  return looptree::BenchmarkUri{std::move(benchmark)};
}

}  // namespace loopfleet::python
