#include "bench/rigs/timing_core.h"

#include "common/base/check.h"

namespace loopfleet::bench {

void RunOn(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(static_cast<std::size_t>(processor), &set);
  LF_CHECK(::sched_setaffinity(0, sizeof set, &set) == 0, "the processors of the plan");
}

OnTimingCore::OnTimingCore(const monitoring::CorePlan& cores) {
  LF_CHECK(::sched_getaffinity(0, sizeof before_, &before_) == 0, "the processors of this thread");
  RunOn({cores.slot_core});
}

OnTimingCore::~OnTimingCore() { ::sched_setaffinity(0, sizeof before_, &before_); }

}  // namespace loopfleet::bench
