#pragma once
// What the datasets contain: shared by opening a URI and listing one's members.

#include <cstdint>
#include <string_view>

namespace loopfleet::looptree {

inline constexpr std::string_view kScheme = "benchmark://";
inline constexpr std::string_view kLoopToolCpuPrefix = "benchmark://loop_tool-cpu-v0/";
inline constexpr std::string_view kLoopToolCudaPrefix = "benchmark://loop_tool-cuda-v0/";
inline constexpr std::string_view kMmRangePrefix = "benchmark://mm64_256_16_range-v0/";
inline constexpr std::string_view kMmPrefix = "benchmark://mm-v0/";
inline constexpr std::string_view kConvPrefix = "benchmark://conv-v0/";

inline constexpr std::int64_t kMaxVectorLength = 8'388'607;  // spec A.1: 8 * 2^20 - 1

struct SizeRange {
  std::int64_t first;
  std::int64_t step;
  std::int64_t count;
  constexpr std::int64_t last() const { return first + step * (count - 1); }
  constexpr bool Has(std::int64_t size) const {
    return size >= first && size <= last() && (size - first) % step == 0;
  }
};
inline constexpr SizeRange kMmRange{.first = 64, .step = 16, .count = 13};

}  // namespace loopfleet::looptree
