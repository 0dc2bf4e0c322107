#pragma once
// ContentionBaseline: how many cycles a throughput probe takes when nothing else uses the core. In
// cycles, so a slower clock is not taken for contention. Outlives executor children. Belongs to one
// thread.

#include <array>
#include <cstddef>
#include <limits>

namespace loopfleet::worker {

class ContentionBaseline {
 public:
  ContentionBaseline() = default;
  // One that was learned before.
  explicit ContentionBaseline(double cycles) : best_(cycles), cycles_(cycles) {}

  // The quickest of some probes that were taken together: between a noisy neighbour's moments there
  // are quiet ones for a single probe long before there are for all of a look.
  void Observe(double probe_cycles);
  // The fifth smallest of 32 in a row, of the 32 for which it was smallest. The smallest of all
  // will not do: one in a hundred is too small by up to a fifth, for the clock was misjudged, and
  // after an hour each quiet core would look contended. Never forgets: a core that has been
  // contended for an hour is still contended. 0 before there are three.
  double cycles() const { return cycles_; }

 private:
  static constexpr std::size_t kBlock = 32;
  static constexpr std::size_t kLeast = 3;

  std::array<double, kBlock> block_{};
  std::size_t count_ = 0;                                  // in block_
  double best_ = std::numeric_limits<double>::infinity();  // of the blocks before it
  double cycles_ = 0;
};

// What a probe takes on a quiet core at most, where `learned` is the least that was seen, and
// `least` what it takes with two units of arithmetic. With one it is twice that, and nothing
// between the two is quiet: a core that had a neighbour for as long as it was watched is found out
// so. `least` 0: not known, then `learned` is believed.
double OnQuietCore(double learned, double least);

}  // namespace loopfleet::worker
