#include "worker/child_programs.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>

#include "common/base/check.h"
#include "common/job/job_spec.h"
#include "worker/processes/compiler_child.h"
#include "worker/processes/executor_child.h"
#include "worker/processes/reference_child.h"

namespace loopfleet::worker {

std::vector<int> KernelCores(const WorkerConfig& config, const monitoring::CorePlan& cores) {
  std::vector<int> chosen = {cores.slot_core};
  const std::size_t most = config.max_threads == 0
                               ? std::min<std::size_t>(1 + cores.other_cores, kMostThreads)
                               : config.max_threads;
  for (const int core : cores.others) {
    if (chosen.size() < most) chosen.push_back(core);
  }
  return chosen;
}

ChildPrograms ChildProgramsOf(const WorkerConfig& config, const Backend& backend,
                              const JobKinds& kinds, const monitoring::CorePlan& cores,
                              Isolation isolation, CodeArena& code) {
  // Shared by the lambdas: made in the fork server, copied into every child by the fork.
  struct Toolchain {
    std::unique_ptr<Compiler> compiler;
    std::unique_ptr<CodeLinker> linker;
  };
  auto tools = std::make_shared<Toolchain>();
  ChildPrograms programs;
  programs.prepare = [tools, &backend, &code] {
    const Status left = code.MakeExecutable();
    LF_CHECK(left.has_value(), "{}", left.error().message);
    *tools = {.compiler = backend.make_compiler(), .linker = backend.make_linker()};
  };
  for (const JobKind& kind : kinds) programs.by_role[kind.child] = kind.make_child(isolation);
  const auto compile_seconds =
      std::chrono::duration_cast<std::chrono::seconds>(config.compile_limit).count() + 1;
  ChildProgram& compiler = programs.by_role[ChildRole::kCompiler];
  compiler.limits.private_bytes = config.compiler_private_bytes;
  compiler.run = [tools, compile_seconds, isolation](Channel& channel) {
    return RunCompilerChild(
        channel, *tools->compiler, *tools->linker,
        {.time_limit_s = static_cast<std::uint64_t>(compile_seconds), .isolation = isolation});
  };
  // Trusted; holds several copies of a job's tensors.
  ChildProgram& reference = programs.by_role[ChildRole::kReference];
  reference.limits = {.private_bytes = config.reference_private_bytes,
                      .address_space_bytes = 2 * config.reference_private_bytes};
  reference.run = [isolation](Channel& channel) { return RunReferenceChild(channel, isolation); };
  for (const ChildRole role : {ChildRole::kVerifier, ChildRole::kExecutor, ChildRole::kProfiler}) {
    programs.by_role[role].limits.private_bytes = config.executor_private_bytes;
    programs.by_role[role].run =
        [options = ExecutorChildOptions{.role = role,
                                        .isolation = isolation,
                                        .cores = KernelCores(config, cores)}](Channel& channel) {
          return RunExecutorChild(channel, options);
        };
  }
  if (!cores.others.empty()) {
    for (const ChildRole role : {ChildRole::kExecutor, ChildRole::kProfiler}) {
      programs.by_role[role].limits.cpu_core = cores.slot_core;
    }
  }
  return programs;
}

PreparerChildren::PreparerChildren(ForkServer& fork_server, const WorkerConfig& config,
                                   const RestartListener& on_restart)
    : compiler(fork_server, config.compile_limit, on_restart),
      reference(fork_server, config.reference_limit, on_restart),
      verifier(fork_server,
               {.role = ChildRole::kVerifier, .arena_places = 1, .run_limit = config.run_limit},
               on_restart) {}

}  // namespace loopfleet::worker
