#pragma once
// The settings of a worker daemon, by precedence: flags, environment, file, defaults.

#include <expected>
#include <string>

#include "worker/worker_config.h"

namespace loopfleet::worker {

inline constexpr int kExitUsage = 2;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitBadConfig = 78;

// Why the daemon does not start: --help (code 0, text for stdout), or an error (text for stderr).
struct StartupExit {
  int exit_code = 0;
  std::string text;
};

std::expected<WorkerConfig, StartupExit> ParseWorkerOptions(int argc, const char* const* argv);

}  // namespace loopfleet::worker
