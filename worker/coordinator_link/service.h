#pragma once
// Service: the part common to all worker daemons, once they can run kernels: serves health and
// metrics over HTTP, registers with the coordinator, and runs leases until drained.

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

// Loads this worker's keys, if configured, and checks that the coordinator may be reached with
// them.
Result<std::optional<wire::PeerKeys>> LoadWorkerKeys(const WorkerConfig& config);

// The labels of a worker's metrics. `children`: the kinds of child process it has.
monitoring::WorkerLabels MetricLabels(std::span<const ChildRole> children);

// The worker's description of itself: HOST-PID by name, and in a container HOST-PID-ID with the
// first eight digits of its id, since results are flagged and workers drained by name. Serve fills
// in its HTTP address.
wire::WorkerHello MakeHello(const WorkerConfig& config, const Conditions& conditions,
                            std::uint32_t max_threads);

// Conditions of this host that may degrade its measurements, for WorkerHello::hindrances. Each is
// also logged with its remedy. Some of them limit grades as well (grade_limit.h).
std::vector<std::string> FindHindrances(std::span<const monitoring::Finding> findings,
                                        Isolation isolation);

// Marks a device as unusable: set once, from any thread, with the reason. The service then drains,
// returns its leases, and ends with that reason.
class DeviceRetirement {
 public:
  // Calls `wake` on retirement, on the thread that retires the device.
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
  DeviceRetirement* retirement = nullptr;  // none: the device is never retired
};

// Prints the ready line, and returns once drained by a signal or because the device was retired
// (kUnavailable). kInvalid: the coordinator refuses this worker permanently.
Status Serve(const WorkerConfig& config, ServiceParts parts, wire::WorkerHello hello);

}  // namespace loopfleet::worker
