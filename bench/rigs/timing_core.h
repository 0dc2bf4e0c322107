#pragma once
// OnTimingCore: pins this thread to the core on which workers time kernels, during its lifetime.

#include <sched.h>

#include <vector>

#include "monitoring/host/core_plan.h"

namespace loopfleet::bench {

// Pins this thread and the threads that it starts from now on.
void RunOn(const std::vector<int>& processors);

class OnTimingCore {
 public:
  explicit OnTimingCore(const monitoring::CorePlan& cores);
  ~OnTimingCore();
  OnTimingCore(const OnTimingCore&) = delete;
  OnTimingCore& operator=(const OnTimingCore&) = delete;

 private:
  cpu_set_t before_{};
};

}  // namespace loopfleet::bench
