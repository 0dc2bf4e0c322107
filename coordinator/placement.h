#pragma once
// Placement: who gets how much of what is ready. Pure functions over plain values.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/job/job_spec.h"

namespace loopfleet::coordinator {

// Whether a worker of this device may run a job placed so.
constexpr bool Serves(DeviceKind device, Placement placement) {
  switch (placement) {
    case Placement::kAny: return true;
    case Placement::kCpu: return device == DeviceKind::kCpu;
    case Placement::kCuda: return device == DeviceKind::kCuda;
  }
  return false;
}

// Shares `ready` jobs out to workers, given the free credit of each, longest idle first: nobody
// gets a second job before everybody with credit got a first. The sum is min(ready, sum of
// credits).
std::vector<std::uint32_t> ShareOut(std::size_t ready, std::span<const std::uint32_t> free_credit);

}  // namespace loopfleet::coordinator
