#pragma once
// Converts C++ values to Python objects. A Failure is raised as the package's JobError; JSON
// becomes dicts, lists and numbers.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/outcome_json.h"
#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet::python {

// Registers loopfleet.JobError(ValueError), with .code, .action_index and .retryable.
void BindErrors(nanobind::module_& module);
[[noreturn]] void Raise(const Failure& failure);

nanobind::object ToPython(const client::Json& json);

// From exactly 16 bytes.
Uuid UuidOf(const nanobind::bytes& bytes);
nanobind::bytes BytesOf(std::string_view bytes);

// Exactly one of the two must be given, else raises MALFORMED.
looptree::Source SourceOf(std::string benchmark, std::string ir);

template <class T>
using Array = nanobind::ndarray<nanobind::numpy, T, nanobind::device::cpu>;

// Wraps the values without a copy: the array owns the vector. `width` > 0: the length of a row.
template <class T>
Array<T> ToArray(std::vector<T> values, std::size_t width = 0) {
  auto* kept = new std::vector<T>(std::move(values));
  nanobind::capsule owner(
      kept, [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
  if (width == 0) return Array<T>(kept->data(), {kept->size()}, owner);
  return Array<T>(kept->data(), {kept->size() / width, width}, owner);
}

}  // namespace loopfleet::python
