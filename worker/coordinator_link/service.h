#pragma once
// Service: what every worker daemon does once it can run kernels, whatever it runs them on: answers
// for its health and metrics, registers with its coordinator, and serves it until it is drained.

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/signal_watcher.h"
#include "common/job/outcome.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/message.h"
#include "common/wire/transport/context.h"
#include "common/wire/transport/wakeup.h"
#include "monitoring/host/host_inspection.h"
#include "monitoring/metrics.h"
#include "monitoring/registry.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/syscall_filter.h"
#include "worker/timing/device_health.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// This worker's keys, if it is to have any, and whether its coordinator may be reached with them.
Result<std::optional<wire::PeerKeys>> LoadWorkerKeys(const WorkerConfig& config);

// Labels of a worker's metrics; `children` are the kinds of child that it has.
monitoring::WorkerLabels MetricLabels(std::span<const ChildRole> children);

// What a worker says of itself first. Its HTTP address is filled in by Serve.
wire::WorkerHello MakeHello(const WorkerConfig& config, const Conditions& conditions,
                            std::uint32_t max_threads);

// What of this host may make its figures worse than they need be, for WorkerHello::hindrances; also
// logged, with what mends it. Some of it limits grades, too (grade_limit.h).
std::vector<std::string> FindHindrances(std::span<const monitoring::Finding> findings,
                                        Isolation isolation);

// A device that is not to be used any more: set once, from any thread, with why. The service then
// drains, gives its leases back, and ends with that reason.
class DeviceRetirement {
 public:
  // `wake` is called, on the thread that retires, when it happens.
  void Retire(std::string reason);
  void OnRetire(std::function<void()> wake);
  std::optional<std::string> reason() const;

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> reason_;
  std::function<void()> wake_;
};

// All of it outlives the call.
struct ServiceParts {
  std::optional<wire::PeerKeys> keys;
  wire::Context& context;
  wire::Wakeup& wakeup;
  LeaseRunner& runner;
  ForkServer& fork_server;
  SignalWatcher& signals;
  monitoring::Registry& registry;
  monitoring::WorkerMetrics& metrics;
  const Clock& clock;
  std::function<CanaryHealth()> canaries;
  std::function<void(double mhz)> set_reference_clock;
  DeviceRetirement* retirement = nullptr;  // none: the device is never given up
};

// Prints the ready line, and returns once drained: by a signal, or as the device was retired
// (kUnavailable then). kInvalid: the coordinator refuses this worker for good.
Status Serve(const WorkerConfig& config, ServiceParts parts, wire::WorkerHello hello);

}  // namespace loopfleet::worker
