#include "worker/timing/contention_baseline.h"

#include <algorithm>
#include <cmath>

namespace loopfleet::worker {

void ContentionBaseline::Observe(double probe_cycles) {
  if (!std::isfinite(probe_cycles) || probe_cycles <= 0) return;
  block_[count_++] = probe_cycles;
  const bool is_first = !std::isfinite(best_);
  if (count_ < (is_first ? kLeast : kBlock)) return;
  std::array<double, kBlock> sorted = block_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto low = sorted.begin() + static_cast<std::ptrdiff_t>(count_ / 8);
  std::nth_element(sorted.begin(), low, end);
  cycles_ = std::min(best_, *low);
  if (count_ < kBlock) return;
  best_ = cycles_;
  count_ = 0;
}

namespace {
constexpr double kAlmost = 0.98;  // allows for a misjudged clock
}

double FewestCycles(double learned, double least) {
  // Processors have two such units or one. From twice `least` on it may be either.
  constexpr double kFewerUnits = 2;
  return learned < kAlmost * kFewerUnits * least ? least : kFewerUnits * least;
}

double QuietCoreCycles(double learned, double least) {
  // Allows for filling and draining the units, and for the scatter of clock readings.
  constexpr double kMost = 1.03;
  if (learned <= 0 || least <= 0) return learned;
  const double fewest = FewestCycles(learned, least);
  return std::clamp(learned, kAlmost * fewest, kMost * fewest);
}

}  // namespace loopfleet::worker
