#include "bench/rigs/quiet_core.h"

#include "worker/isa/isa_support.h"
#include "worker/timing/device_health.h"
#include "worker/timing/device_meter.h"
#include "worker/timing/measurement_rounds.h"
#include "worker/timing/statistics.h"

namespace loopfleet::bench {

QuietCore::QuietCore()
    : on_timing_core_(monitoring::PlanCores(monitoring::AllowedProcessors().value(), {})) {
  constexpr std::uint64_t kNoStreams = 0;
  const worker::CoreKernels& kernels = *worker::HostIsa().core_kernels;
  const worker::DeviceReading reading = worker::MeasureDevice(kernels, stopwatch_, kNoStreams);
  // The policy of a worker that has just started.
  const worker::SamplingPolicy policy =
      worker::DeviceHealth({}, reading, {}).PolicyFor(worker::MeasurementRounds({}, {}));
  probe_.emplace(kernels, stopwatch_, policy.probe_steps);
  const double per_ns = reading.clock_mhz > 0 ? reading.clock_mhz / worker::kMhzPerPerNs : 1;
  quiet_ns_ = worker::kContendedFrom * policy.quiet_cycles / per_ns;
}

bool QuietCore::Await(Nanos patience) {
  return probe_->WaitUntilQuiet(quiet_ns_, static_cast<std::uint64_t>(patience.count()));
}

}  // namespace loopfleet::bench
