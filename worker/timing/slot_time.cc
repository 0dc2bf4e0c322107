#include "worker/timing/slot_time.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"

namespace loopfleet::worker {

std::string_view SlotStepLabel(SlotStep step) {
  constexpr std::array<std::string_view, kSlotSteps> kLabels = {
      "slot_take", "slot_map", "slot_warm", "slot_probe", "slot_clock", "slot_wait", "slot_try",
  };
  return kLabels[static_cast<std::size_t>(step)];
}

std::uint64_t SlotTime::total_ns() const {
  return std::accumulate(ns.begin(), ns.end(), std::uint64_t{0});
}

void SlotTime::LimitTo(std::uint64_t most_ns) {
  for (std::uint64_t& step : ns) {
    step = std::min(step, most_ns);
    most_ns -= step;
  }
}

SlotTime& SlotTime::operator+=(const SlotTime& other) {
  for (std::size_t i = 0; i < kSlotSteps; ++i) ns[i] += other.ns[i];
  return *this;
}

std::string_view ActivityName(Activity activity) {
  switch (activity) {
    case Activity::kIdle: return "idle";
    case Activity::kWait: return "wait";
    case Activity::kCompile: return "compile";
    case Activity::kVerify: return "verify";
    case Activity::kMeasure: return "measure";
    case Activity::kCanary: return "canary";
    case Activity::kLost: return "lost";
  }
  LF_CHECK(false, "activity {}", static_cast<int>(activity));
}

}  // namespace loopfleet::worker
