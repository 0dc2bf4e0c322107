#pragma once
// Runs a program of this host from bytes to bytes, with limits, where it finds no files of the
// worker's and can leave none: its working directory is /proc.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::worker {

struct ToolLimits {
  std::chrono::seconds wall_time{60};
  std::uint64_t memory_bytes = std::uint64_t{512} << 20;
  std::uint64_t output_bytes = std::uint64_t{64} << 20;
};

// What it writes to stdout, if it exits with 0. Errors: kNotFound (it is not installed), kTimeout,
// kInvalid (it fails or exceeds a limit; the message ends with the last of what it wrote to
// stderr).
Result<std::string> RunTool(const std::vector<std::string>& argv, std::string_view input,
                            const ToolLimits& limits);

}  // namespace loopfleet::worker
