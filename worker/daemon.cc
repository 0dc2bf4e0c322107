#include "worker/daemon.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/signal_watcher.h"
#include "common/wire/transport/context.h"
#include "common/wire/transport/wakeup.h"
#include "monitoring/metrics.h"
#include "monitoring/registry.h"
#include "worker/coordinator_link/service.h"
#include "worker/cpu_machine.h"
#include "worker/sandbox/fork_server.h"
#include "worker/worker_options.h"

namespace loopfleet::worker {
namespace {

Status RunUntilDrained(const WorkerConfig& config, Machine& machine) {
  LF_TRY(std::optional<wire::PeerKeys> keys, LoadWorkerKeys(config));
  // The order matters from here on: this process forks only before it has other threads.
  LF_TRY(const ChildPrograms programs, machine.Inspect());
  LF_TRY(const std::unique_ptr<ForkServer> fork_server, ForkServer::Start(programs));
  LF_TRY(const std::unique_ptr<SignalWatcher> signals, SignalWatcher::Start());

  const SystemClock clock;
  monitoring::Registry registry;
  monitoring::RegisterBuildInfo(registry, {.component = "worker", .version = LOOPFLEET_VERSION});
  monitoring::WorkerMetrics metrics(registry, MetricLabels(machine.children()));
  wire::Wakeup wakeup;
  wire::Context context;
  const auto serve = [&](const Machine::Service& service) {
    return Serve(config,
                 {.keys = std::move(keys),
                  .context = context,
                  .wakeup = wakeup,
                  .runner = service.runner,
                  .fork_server = *fork_server,
                  .signals = *signals,
                  .registry = registry,
                  .metrics = metrics,
                  .clock = clock,
                  .canaries = service.canaries,
                  .set_reference_clock = service.set_reference_clock,
                  .retirement = service.retirement},
                 service.hello);
  };
  return machine.Run({.fork_server = *fork_server,
                      .signals = *signals,
                      .registry = registry,
                      .metrics = metrics,
                      .clock = clock,
                      .on_restart =
                          [&](ChildRole role, ExitReason::Cause cause) {
                            metrics.ChildRestarted(ChildRoleName(role), RestartReason(cause));
                            log::Warning("child.ended child={} reason={}", ChildRoleName(role),
                                         RestartReason(cause));
                          },
                      .on_output = [&] { wakeup.Signal(); },
                      .serve = serve});
}

}  // namespace

int RunWorker(const WorkerConfig& config, const Backend& backend, const JobKinds& kinds,
              const MachineMaker& make_gpu) {
  log::Init("loopfleet-worker", config.log_level);
  for (const std::string& text : config.unknown_variables)
    log::Warning("settings.unknown {}", text);
  if (config.cuda_device && !make_gpu) {
    log::Error("worker.failed message=\"--device cuda:{}: this build has no CUDA worker\"",
               *config.cuda_device);
    return kExitBadConfig;
  }
  const std::unique_ptr<Machine> machine =
      config.cuda_device ? make_gpu(config) : MakeCpuMachine(config, backend, kinds);
  const Status ended = RunUntilDrained(config, *machine);
  if (ended) return 0;
  log::Error("worker.failed message=\"{}\"", ended.error().message);
  const ErrorKind kind = ended.error().kind;
  const bool cannot_be = kind == ErrorKind::kInvalid ||
                         (config.cuda_device && kind == ErrorKind::kNotFound);  // no such device
  return cannot_be ? kExitBadConfig : kExitInternal;
}

int WorkerMain(int argc, const char* const* argv, const Backend& backend, const JobKinds& kinds,
               const MachineMaker& make_gpu) {
  const std::expected<WorkerConfig, StartupExit> config = ParseWorkerOptions(argc, argv);
  if (config) return RunWorker(*config, backend, kinds, make_gpu);
  fmt::print(config.error().exit_code == 0 ? stdout : stderr, "{}", config.error().text);
  return config.error().exit_code;
}

}  // namespace loopfleet::worker
