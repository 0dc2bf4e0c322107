#pragma once
// JobKind: a kind of job that this worker runs beside loop schedules, with children and threads of
// its own. The daemon knows nothing else of it.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/job/outcome.h"
#include "common/job/task_kind.h"
#include "monitoring/metrics.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/evaluation/preparations.h"
#include "worker/sandbox/exit_reason.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

struct JobKind {
  // What the daemon lends; all but the conditions outlives the runner.
  struct Parts {
    ForkServer& fork_server;
    monitoring::WorkerMetrics& metrics;
    Preparations& preparations;  // to be told of work on the cores beside the timing core
    const Clock& clock;
    Conditions conditions;
    std::size_t max_held = 1;   // leases at once
    std::string llvm_programs;  // WorkerConfig's
    // Called on any thread, whenever there is a report to collect.
    std::function<void()> on_output;
    std::function<void(ChildRole, ExitReason::Cause)> on_restart;
  };

  TaskKind kind = TaskKind::kLoopSchedule;
  ChildRole child = ChildRole::kCompiler;
  std::function<ChildProgram(Isolation)> make_child;
  std::function<std::unique_ptr<LeaseRunner>(Parts)> make_runner;
};

}  // namespace loopfleet::worker
