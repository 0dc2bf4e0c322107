#pragma once
// GpuArch: a compute capability, as in "sm_90".

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace loopfleet::worker {

struct GpuArch {
  int number = 80;           // 10 * major + minor: sm_80, sm_103
  std::string Name() const;  // "sm_80"
  friend auto operator<=>(const GpuArch&, const GpuArch&) = default;
};

// What the devices that we make code for have at least: what current toolkits still know.
inline constexpr GpuArch kOldestArch{75};
// The newest that LLVM 19 makes PTX for; newer devices take it as it is.
inline constexpr GpuArch kNewestPtxArch{90};

// "sm_90". kInvalid, with what would do: it is nothing of the kind, or older than kOldestArch.
Result<GpuArch> ParseGpuArch(std::string_view text);

inline GpuArch PtxArchFor(GpuArch arch) { return arch < kNewestPtxArch ? arch : kNewestPtxArch; }

}  // namespace loopfleet::worker
