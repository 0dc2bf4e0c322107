#pragma once
// ContentionBaseline: how many cycles a throughput probe takes while nothing else uses the core.
// Counted in cycles, so that a slower clock does not look like contention. Outlives executor
// children. Belongs to one thread.

#include <array>
#include <cstddef>
#include <limits>

namespace loopfleet::worker {

class ContentionBaseline {
 public:
  ContentionBaseline() = default;
  // Starts from a known baseline.
  explicit ContentionBaseline(double cycles) : best_(cycles), cycles_(cycles) {}

  // `probe_cycles`: the quickest probe of a round. Beside a noisy neighbour single probes find
  // quiet moments long before a whole round does.
  void Observe(double probe_cycles);
  // The fifth smallest of 32 consecutive observations, minimised over all blocks of 32. The
  // smallest observation would not do: one in a hundred is up to a fifth too small, because the
  // clock was misjudged, so after an hour every quiet core would look contended. Never forgets: a
  // core that has been contended for an hour is still contended. 0 before the third observation.
  double cycles() const { return cycles_; }

 private:
  static constexpr std::size_t kBlock = 32;
  static constexpr std::size_t kLeast = 3;

  std::array<double, kBlock> block_{};
  std::size_t count_ = 0;                                  // in block_
  double best_ = std::numeric_limits<double>::infinity();  // of the full blocks
  double cycles_ = 0;
};

// The cycles of arithmetic that took `learned` at best, if the core's units do nothing else.
// `least`, above 0: the cycles with two units; one unit takes twice as long.
double FewestCycles(double learned, double least);

// The most cycles that a probe takes on a quiet core. `learned`: the fewest observed. `least`: the
// fewest possible with two arithmetic units; one unit takes twice as long, and no quiet core lies
// between the two. This unmasks a core that has had a neighbour for as long as it was watched, and
// a clock that was misjudged too often. Either is 0: unknown, `learned` is returned.
double QuietCoreCycles(double learned, double least);

}  // namespace loopfleet::worker
