#pragma once
// OnTimingCore: this thread runs where workers time kernels, for as long as the object lives.

#include <sched.h>

#include <vector>

#include "monitoring/host/core_plan.h"

namespace loopfleet::bench {

// This thread, and those that it starts from now on.
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
