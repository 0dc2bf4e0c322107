#pragma once
// QuietCore: waits until nothing else uses the core, as a worker does before it looks at a kernel,
// so that what is compared is compared in the moments that are worth anything. Belongs to the
// thread that made it, which keeps to the timing core for as long.

#include <optional>

#include "bench/rigs/timing_core.h"
#include "common/base/clock.h"
#include "worker/timing/host_core_probe.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::bench {

class QuietCore {
 public:
  QuietCore();  // takes about 150 ms

  // False: there was no quiet moment within the patience.
  bool Await(Nanos patience);

 private:
  OnTimingCore on_timing_core_;  // before anything is measured
  worker::SystemStopwatch stopwatch_;
  std::optional<worker::HostCoreProbe> probe_;
  double quiet_ns_ = 0;  // a probe that takes no longer is quiet
};

}  // namespace loopfleet::bench
