#pragma once
// ProgramUri: a program that passes are run on, as named in a job. Parsing looks at the name only;
// a worker makes or finds the bitcode. Keys use the hash of the module, never the URI.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"

namespace loopfleet::passes {

// CompilerGym's datasets whose bitcode is on a host of theirs. Jobs that name them are jobs of
// passes, and are refused with what to do.
inline constexpr std::array<std::string_view, 15> kDatasetsElsewhere = {
    "benchmark://cbench-v1",     "benchmark://chstone-v0",    "benchmark://npb-v0",
    "benchmark://blas-v0",       "benchmark://mibench-v1",    "benchmark://github-v0",
    "benchmark://linux-v0",      "benchmark://opencv-v0",     "benchmark://tensorflow-v0",
    "benchmark://anghabench-v0", "benchmark://anghabench-v1", "benchmark://clgen-v0",
    "benchmark://jotaibench-v0", "benchmark://poj104-v0",     "benchmark://poj104-v1",
};

// generator://csmith-v0/<seed>: what Csmith writes for the seed.
struct CsmithProgram {
  std::uint32_t seed = 0;
  friend bool operator==(const CsmithProgram&, const CsmithProgram&) = default;
};
// generator://llvm-stress-v0/<seed>: what llvm-stress writes for the seed.
struct StressProgram {
  std::uint32_t seed = 0;
  friend bool operator==(const StressProgram&, const StressProgram&) = default;
};
// benchmark://small-v0/<name>: a C file of this project.
struct SmallProgram {
  std::string name;
  friend bool operator==(const SmallProgram&, const SmallProgram&) = default;
};
// benchmark://debian-v0/<name>: built from a Debian source package.
struct DebianProgram {
  std::string name;
  friend bool operator==(const DebianProgram&, const DebianProgram&) = default;
};
// bitcode://sha256/<64 hexadecimal digits>: anybody's bitcode, named by the hash of its bytes.
struct BitcodeProgram {
  std::string sha256;
  friend bool operator==(const BitcodeProgram&, const BitcodeProgram&) = default;
};
using ProgramUri =
    std::variant<CsmithProgram, StressProgram, SmallProgram, DebianProgram, BitcodeProgram>;

// kInvalid: a job's INVALID_BENCHMARK. Says what to do for the datasets of CompilerGym that cannot
// be had.
Result<ProgramUri> ParseProgramUri(std::string_view uri);
std::string ToString(const ProgramUri& uri);  // ParseProgramUri gives it back
// What the program is in keys of results: the URI, and the hash of the bitcode where that is
// pinned.
std::string ProgramKey(const ProgramUri& uri);

std::span<const std::string_view> SmallProgramNames();

inline constexpr std::size_t kMostBitcodeBytes = std::size_t{16} << 20;  // of a program
// Where the bitcode with this hash lies in a worker's folder of programs.
std::string BitcodeFile(std::string_view sha256);

}  // namespace loopfleet::passes
