#include "worker/timing/quiet_level.h"

#include <cmath>
#include <utility>

namespace loopfleet::worker {

void QuietLevel::Observe(double probe_cycles) {
  if (!std::isfinite(probe_cycles) || probe_cycles <= 0) return;
  for (double& kept : smallest_) {
    if (probe_cycles < kept) std::swap(probe_cycles, kept);
  }
}

double QuietLevel::cycles() const { return std::isfinite(smallest_.back()) ? smallest_.back() : 0; }

}  // namespace loopfleet::worker
