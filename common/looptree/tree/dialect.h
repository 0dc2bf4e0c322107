#pragma once
// The two dialects of actions, and the device that a benchmark asks for.

#include <cstdint>

#include "common/base/enum_names.h"

namespace loopfleet::looptree {

enum class Dialect : std::uint8_t { kSimple, kAgent };
// The device that a benchmark asks for. Only loop_tool-cuda-v0 asks for a GPU.
enum class Target : std::uint8_t { kCpu, kCuda };

}  // namespace loopfleet::looptree

namespace loopfleet {

template <>
struct EnumNames<looptree::Dialect> {
  static constexpr std::array kAll = {NamedValue{looptree::Dialect::kSimple, "simple"},
                                      NamedValue{looptree::Dialect::kAgent, "agent"}};
};

}  // namespace loopfleet
