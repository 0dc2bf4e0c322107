#pragma once
// What the children of a worker's fork server run, and the handles on one set of those that prepare
// kernels: for the daemon, and for `loopfleet-worker serve`.

#include <vector>

#include "monitoring/host/core_plan.h"
#include "worker/backend/backend.h"
#include "worker/evaluation/job_kind.h"
#include "worker/processes/compiler_process.h"
#include "worker/processes/executor_process.h"
#include "worker/processes/reference_process.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/syscall_filter.h"
#include "worker/verification/code_arena.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// What the program runs beside loop schedules and probes.
using JobKinds = std::vector<JobKind>;

// What kernels run on: the timing core, then processors for their parallel loops: one on each other
// core, and second threads of these (CorePlan) only if max_threads asks for so many.
std::vector<int> KernelCores(const WorkerConfig& config, const monitoring::CorePlan& cores);

// `backend`, `kinds` and `code` are used until the fork server ends.
ChildPrograms ChildProgramsOf(const WorkerConfig& config, const Backend& backend,
                              const JobKinds& kinds, const monitoring::CorePlan& cores,
                              Isolation isolation, CodeArena& code);

// The children of one preparing thread.
struct PreparerChildren {
  PreparerChildren(ForkServer& fork_server, const WorkerConfig& config,
                   const RestartListener& on_restart);

  CompilerProcess compiler;
  ReferenceProcess reference;
  ExecutorProcess verifier;
};

}  // namespace loopfleet::worker
