#include "bench/quiet_core.h"

#include "common/base/check.h"
#include "worker/hardware.h"
#include "worker/timing/device_meter.h"
#include "worker/timing/quiet_level.h"
#include "worker/timing/sampler.h"
#include "worker/timing/statistics.h"

namespace loopfleet::bench {

QuietCore::Pin::Pin() {
  LF_CHECK(::sched_getaffinity(0, sizeof before_, &before_) == 0, "the processors of this thread");
  int last = CPU_SETSIZE - 1;
  while (last > 0 && !CPU_ISSET(last, &before_)) --last;
  cpu_set_t one{};
  CPU_SET(last, &one);
  LF_CHECK(::sched_setaffinity(0, sizeof one, &one) == 0, "one processor for this thread");
}

QuietCore::Pin::~Pin() { ::sched_setaffinity(0, sizeof before_, &before_); }

QuietCore::QuietCore() : probe_(worker::CoreKernelsFor(worker::HostIsa()), stopwatch_) {
  constexpr std::uint64_t kNoStreams = 0;
  const worker::DeviceReading reading =
      worker::MeasureDevice(worker::CoreKernelsFor(worker::HostIsa()), stopwatch_, kNoStreams);
  worker::QuietLevel level;
  for (const double cycles : reading.probe_cycles) level.Observe(cycles);
  const double cycles = worker::OnQuietCore(level.cycles(), reading.least_probe_cycles) *
                        static_cast<double>(probe_.steps()) /
                        static_cast<double>(reading.probe_steps);
  const double per_ns = reading.clock_mhz > 0 ? reading.clock_mhz / worker::kMhzPerPerNs : 1;
  quiet_ns_ = cycles * worker::kContendedFrom / per_ns;
}

bool QuietCore::Await(Nanos patience) {
  return probe_.BecomesQuiet(quiet_ns_, static_cast<std::uint64_t>(patience.count()));
}

}  // namespace loopfleet::bench
