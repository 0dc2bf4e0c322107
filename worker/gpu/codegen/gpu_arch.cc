#include "worker/gpu/codegen/gpu_arch.h"

#include <fmt/format.h>

#include "common/base/number_in.h"

namespace loopfleet::worker {

std::string GpuArch::Name() const { return fmt::format("sm_{}", number); }

Result<GpuArch> ParseGpuArch(std::string_view text) {
  const std::string_view digits = text.starts_with("sm_") ? text.substr(3) : std::string_view();
  const auto number = NumberIn<int>(digits);
  if (!number || *number >= 1000) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("'{}' is not a GPU architecture: use sm_80, sm_90 or sm_100", text));
  }
  const GpuArch arch{*number};
  if (arch < kOldestArch) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} is too old: the oldest is {}", text, kOldestArch.Name()));
  }
  return arch;
}

}  // namespace loopfleet::worker
