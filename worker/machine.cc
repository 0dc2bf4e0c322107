#include "worker/machine.h"

#include <fmt/format.h>

#include "common/base/log.h"

namespace loopfleet::worker {

Result<Isolation> FindIsolation(const WorkerConfig& config) {
  const Isolation isolation = ProbeIsolation();
  if (isolation == Isolation::kSeccomp) return isolation;
  if (config.sandbox == SandboxDemand::kFull) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("--require-sandbox=full: this host offers '{}' only, for it lets no "
                            "process filter its system calls (seccomp); allow that, or run without "
                            "the flag",
                            IsolationName(isolation)));
  }
  log::Warning(
      "worker.sandbox isolation={} message=\"no filter of system calls on this host, so no jobs of "
      "LLVM passes\"",
      IsolationName(isolation));
  return isolation;
}

}  // namespace loopfleet::worker
