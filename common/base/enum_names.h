#pragma once
// EnumNames: the name of each value of an enum, the same in job lines, stored jobs, JSON and the
// command line. Specialized beside the enum.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "common/base/check.h"

namespace loopfleet {

template <class E>
struct NamedValue {
  E value;
  std::string_view name;
};

template <class E>
struct EnumNames;  // kAll: an array with a NamedValue for every value

template <class E>
constexpr std::string_view EnumName(E value) {
  for (const auto& named : EnumNames<E>::kAll) {
    if (named.value == value) return named.name;
  }
  LF_CHECK(false, "a value without a name: {}", static_cast<int>(value));
}

// None: no value has this name.
template <class E>
constexpr std::optional<E> ValueNamed(std::string_view name) {
  for (const auto& named : EnumNames<E>::kAll) {
    if (named.name == name) return named.value;
  }
  return std::nullopt;
}

template <class E>
constexpr auto AllNames() {
  std::array<std::string_view, EnumNames<E>::kAll.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = EnumNames<E>::kAll[i].name;
  return names;
}

}  // namespace loopfleet
