#pragma once
// The two languages of loop_tool, and what a benchmark asks to run on.

#include <cstdint>

namespace loopfleet::looptree {

enum class Dialect : std::uint8_t { kSimple, kAgent };
// What the benchmark asks to run on. Only loop_tool-cuda-v0 asks for a GPU by name.
enum class Target : std::uint8_t { kCpu, kCuda };

}  // namespace loopfleet::looptree
