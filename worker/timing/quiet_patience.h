#pragma once
// QuietPatience: how long a look may wait for a quiet moment, learned from how often waiting helped.
// A wait that ends in a quiet moment is worth so much of the core, and any wait costs what it takes;
// the bound by which recent waits would have come to most is the bound of the next ones. Only waits
// that were free to take the longest say what each shorter bound would have given, so one look in
// some always is. Decides when to look, never what counts. Belongs to one thread.

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker/timing/sampler.h"

namespace loopfleet::worker {

class QuietPatience {
 public:
  QuietPatience();

  // For the next look, whose policy would wait for `longest_ns`: no more than that.
  std::uint64_t Next(std::uint64_t longest_ns);
  void Observe(const QuietWait& wait);

  // By which recent waits would have come to most.
  std::uint64_t bound_ns() const;

  // The longest that is learned about. A policy that would wait for longer may, where that long is
  // worth it.
  static constexpr std::uint64_t kLongestNs = 1'000'000;
  static constexpr std::uint32_t kExploresOneIn = 16;  // looks

 private:
  static constexpr std::array<std::uint64_t, 6> kBoundsNs = {kLongestNs,     kLongestNs / 2,
                                                             kLongestNs / 4, kLongestNs / 8,
                                                             kLongestNs / 16, 0};

  std::array<double, kBoundsNs.size()> worth_ns_{};  // of recent waits, under each bound
  std::uint32_t looks_ = 0;
};

}  // namespace loopfleet::worker
