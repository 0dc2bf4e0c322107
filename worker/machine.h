#pragma once
// Machine: what a daemon measures on: the cores of this host, or a CUDA device. The daemon
// (daemon.cc) calls Inspect while the process has one thread, forks, and then calls Run.

#include <functional>
#include <memory>
#include <span>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/signal_watcher.h"
#include "common/wire/message.h"
#include "monitoring/metrics.h"
#include "monitoring/registry.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/coordinator_link/service.h"
#include "worker/processes/compiler_process.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/syscall_filter.h"
#include "worker/timing/device_health.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

class Machine {
 public:
  // What serves leases once the machine runs.
  struct Service {
    LeaseRunner& runner;
    wire::WorkerHello hello;
    std::function<CanaryHealth()> canaries = [] { return CanaryHealth{}; };
    std::function<void(double mhz)> set_reference_clock = [](double) {};
    DeviceRetirement* retirement = nullptr;  // none: the device is never retired
  };
  // What the daemon lends.
  struct Daemon {
    ForkServer& fork_server;
    SignalWatcher& signals;
    monitoring::Registry& registry;
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
    RestartListener on_restart;
    std::function<void()> on_output;              // on any thread
    std::function<Status(const Service&)> serve;  // returns when the daemon ends
  };

  virtual ~Machine() = default;
  virtual std::span<const ChildRole> children() const = 0;
  // What the children run. kInvalid, kNotFound: the host cannot do what the configuration demands.
  virtual Result<ChildPrograms> Inspect() = 0;
  // Starts children and pipeline, and serves. Called once, after Inspect.
  virtual Status Run(const Daemon& daemon) = 0;
};

// How far this host lets children be kept apart, for Inspect. kInvalid: the configuration demands
// more.
Result<Isolation> FindIsolation(const WorkerConfig& config);

// The machine that the configuration names; `config` outlives it. Empty: the program has none.
using MachineMaker = std::function<std::unique_ptr<Machine>(const WorkerConfig& config)>;

}  // namespace loopfleet::worker
