#pragma once
// Freshness: how old a stored result may be to answer a job.

#include <algorithm>
#include <chrono>

#include "common/base/clock.h"

namespace loopfleet::coordinator {

// The earliest acceptable time of measurement for JobSpec::max_age_s; the epoch: any.
inline WallTime MeasuredSince(WallTime now, double max_age_s) {
  if (max_age_s <= 0) return {};
  const double now_s = std::chrono::duration<double>(now.time_since_epoch()).count();
  return WallTime(std::chrono::duration_cast<Nanos>(
      std::chrono::duration<double>(std::max(now_s - max_age_s, 0.0))));
}

}  // namespace loopfleet::coordinator
