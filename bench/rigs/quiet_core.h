#pragma once
// QuietCore: waits until nothing else uses the core, as a worker does before a measurement round.
// Used by the thread that created it, which is pinned to the timing core during its lifetime.

#include <optional>

#include "bench/rigs/timing_core.h"
#include "common/base/clock.h"
#include "worker/timing/host_core_probe.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::bench {

class QuietCore {
 public:
  QuietCore();  // takes about 150 ms

  // False: no quiet moment within `patience`.
  bool Await(Nanos patience);

 private:
  OnTimingCore on_timing_core_;  // first: the members below measure on this core
  worker::SystemStopwatch stopwatch_;
  std::optional<worker::HostCoreProbe> probe_;
  double quiet_ns_ = 0;  // longest probe that counts as quiet, nanoseconds
};

}  // namespace loopfleet::bench
