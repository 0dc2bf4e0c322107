#pragma once
// Placement: who gets how much of what is ready. Pure functions over plain values.

#include <chrono>
#include <compare>
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

// What a job needs of its worker.
struct Demand {
  Placement placement = Placement::kCpu;
  std::uint32_t threads = 1;
  friend auto operator<=>(const Demand&, const Demand&) = default;
};
// What a worker has.
struct Supply {
  DeviceKind device = DeviceKind::kCpu;
  std::uint32_t max_threads = 1;
};
constexpr bool Serves(const Supply& supply, const Demand& demand) {
  return Serves(supply.device, demand.placement) && demand.threads <= supply.max_threads;
}

// When a worker is given more. One message for each job that ends costs the coordinator as much as
// twenty jobs of a larger message; so a worker of short jobs is given several at once, and not
// before it has room for them. It never idles for that: half of its credit is enough.
struct Refill {
  std::uint32_t jobs = 1;  // short ones, at least
  std::chrono::nanoseconds work{0};
  std::chrono::nanoseconds short_job{0};
};
struct Appetite {
  std::chrono::nanoseconds job_took{0};  // of late; 0: not known
  std::uint32_t credit = 1;
};
// How much free credit makes it worth sending leases; 1 to credit.
std::uint32_t WorthSending(const Refill& refill, const Appetite& appetite);

// Shares `ready` jobs out to workers, given the free credit of each, longest idle first: nobody
// gets a second job before everybody with credit got a first. The sum is min(ready, sum of
// credits).
std::vector<std::uint32_t> ShareOut(std::size_t ready, std::span<const std::uint32_t> free_credit);

}  // namespace loopfleet::coordinator
