#include "worker/gpu/codegen/gpu_arch.h"

#include <fmt/format.h>

#include <charconv>

namespace loopfleet::worker {

std::string GpuArch::Name() const { return fmt::format("sm_{}", number); }

Result<GpuArch> ParseGpuArch(std::string_view text) {
  GpuArch arch;
  const std::string_view digits = text.starts_with("sm_") ? text.substr(3) : std::string_view();
  const auto [end, problem] =
      std::from_chars(digits.data(), digits.data() + digits.size(), arch.number);
  const bool whole = !digits.empty() && problem == std::errc() &&
                     end == digits.data() + digits.size() && arch.number < 1000;
  if (!whole) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("'{}' is not a GPU architecture: use sm_80, sm_90 or sm_100", text));
  }
  if (arch < kOldestArch) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} is too old: the oldest is {}", text, kOldestArch.Name()));
  }
  return arch;
}

}  // namespace loopfleet::worker
