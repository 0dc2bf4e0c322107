#pragma once
// EnumNames: the name of each value of an enum, the same in job lines, stored jobs, JSON and the
// command line.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "common/base/check.h"
#include "common/job/job_spec.h"

namespace loopfleet {

template <class E>
struct NamedValue {
  E value;
  std::string_view name;
};

template <class E>
struct EnumNames;  // kAll: every value

template <>
struct EnumNames<looptree::RuleSet> {
  static constexpr std::array kAll = {NamedValue{looptree::RuleSet::kStructural, "structural"},
                                      NamedValue{looptree::RuleSet::kLoopNest, "loop_nest"},
                                      NamedValue{looptree::RuleSet::kLoopNest58, "loop_nest_58"}};
};
template <>
struct EnumNames<looptree::OnIllegal> {
  static constexpr std::array kAll = {NamedValue{looptree::OnIllegal::kReject, "reject"},
                                      NamedValue{looptree::OnIllegal::kSkip, "skip"}};
};
template <>
struct EnumNames<looptree::Dialect> {
  static constexpr std::array kAll = {NamedValue{looptree::Dialect::kSimple, "simple"},
                                      NamedValue{looptree::Dialect::kAgent, "agent"}};
};
template <>
struct EnumNames<DeviceRequest> {
  static constexpr std::array kAll = {NamedValue{DeviceRequest::kByBenchmark, "by_benchmark"},
                                      NamedValue{DeviceRequest::kCpu, "cpu"},
                                      NamedValue{DeviceRequest::kCuda, "cuda"},
                                      NamedValue{DeviceRequest::kAny, "any"}};
};
template <>
struct EnumNames<CacheState> {
  static constexpr std::array kAll = {NamedValue{CacheState::kWarm, "warm"},
                                      NamedValue{CacheState::kCold, "cold"}};
};
template <>
struct EnumNames<Grade> {
  static constexpr std::array kAll = {NamedValue{Grade::kA, "A"}, NamedValue{Grade::kB, "B"},
                                      NamedValue{Grade::kC, "C"}, NamedValue{Grade::kD, "D"}};
};

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
