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

// The oldest architecture that we generate code for: the oldest that current toolkits support.
inline constexpr GpuArch kOldestArch{75};
// The newest architecture that LLVM 19 makes PTX for. Newer devices accept that PTX.
inline constexpr GpuArch kNewestPtxArch{90};

// Parses "sm_90". kInvalid, with examples of valid names: not an architecture, or older than
// kOldestArch.
Result<GpuArch> ParseGpuArch(std::string_view text);

inline GpuArch PtxArchFor(GpuArch arch) { return arch < kNewestPtxArch ? arch : kNewestPtxArch; }

}  // namespace loopfleet::worker
