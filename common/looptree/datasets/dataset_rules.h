#pragma once
// DatasetRules: a dataset's members, and how a member's name becomes a benchmark. One row per
// dataset; opening, listing, counting and drawing all use it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/program/limits.h"
#include "common/looptree/program/rejection.h"

namespace loopfleet::looptree {

inline constexpr std::string_view kScheme = "benchmark://";

struct DatasetRules {
  Dataset dataset;
  std::string (*member)(std::uint64_t index);  // name of a member; null if dataset.size is 0
  Checked<Benchmark> (*open)(std::string_view member, const Limits& limits);
};

std::span<const DatasetRules> VectorDatasets();       // loop_tool-cpu-v0, loop_tool-cuda-v0
std::span<const DatasetRules> MatrixDatasets();       // mm-v0, the range, the permutations
std::span<const DatasetRules> ConvolutionDatasets();  // conv-v0, train, test, the permutations
std::span<const DatasetRules> ProgramDatasets();      // program-v0
std::span<const DatasetRules> AllDatasets();          // in the order of Datasets()

// The rejection of an open function: the member, the reason, and the nearest valid member if known.
std::unexpected<Rejection> RejectMember(std::string_view member, std::string_view why,
                                        std::string_view nearest = {});

// What is wrong with a number in a member's name, for the end of `why`: "; '064' has a leading
// zero". "": nothing.
std::string WrongNumber(std::string_view member);

// "64_96_128" as `count` sizes >= 1; nullopt if it is anything else.
std::optional<std::vector<std::int64_t>> ParseSizes(std::string_view text, std::size_t count);

}  // namespace loopfleet::looptree
