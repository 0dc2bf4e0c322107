#pragma once
// How C and C++ become the bitcode that passes start from.

#include <array>
#include <string_view>

namespace loopfleet::passes {

// CompilerGym's arguments of clang. -O0 would mark every function noinline, and `inline` could do
// nothing.
inline constexpr auto kClangFlags = std::to_array<std::string_view>(
    {"-O1", "-Xclang", "-disable-llvm-passes", "-w", "-g0", "-fno-ident", "-emit-llvm", "-c"});

}  // namespace loopfleet::passes
