#pragma once
// The JSON of a job's optional field (common/job/job_fields.h): enums by name, "fresh" as a
// boolean, other values as themselves.

#include <nlohmann/json.hpp>

#include <optional>
#include <type_traits>

#include "common/base/enum_names.h"
#include "common/job/job_spec.h"

namespace loopfleet {

// Not for an empty optional.
template <class Json, class T>
Json FieldJson(const T& value) {
  if constexpr (std::is_same_v<T, Freshness>) {
    return value == Freshness::kMeasureAgain;
  } else if constexpr (std::is_enum_v<T>) {
    return EnumName(value);
  } else if constexpr (std::is_same_v<T, std::optional<looptree::Dialect>>) {
    return EnumName(*value);
  } else {
    return value;
  }
}

}  // namespace loopfleet
