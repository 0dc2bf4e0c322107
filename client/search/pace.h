#pragma once
// Pace: how a search spends its time where kernels are slow. Fewer schedules are under way, so that
// what they show is used; and those that are hopeless end sooner.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace loopfleet::client {

// How many schedules may be under way, in a search that ends after `seconds`, at the pace of those
// `told` (at least one) in the `took` seconds so far: as many as a sixteenth of its time (or a
// second) and what is left of it have room for; twice as many as are told at most, or four, while
// the pace is hardly known.
inline std::size_t MostUnderWay(double seconds, double took, std::uint64_t told) {
  constexpr double kFirst = 4;
  constexpr double kParts = 16;
  const double count = static_cast<double>(told);
  const double pace = count / took;
  const double useful = std::min(2 * count, pace * std::max(1.0, seconds / kParts));
  return static_cast<std::size_t>(
      std::max(0.0, std::min(pace * (seconds - took), std::max(kFirst, useful))));
}

// The bound above which a schedule is cut: `factor` times the best so far, and 5 ms above it at
// most. Measuring one takes about four times as long as it runs, so a short one costs nothing.
// 0: there is none.
inline double CutAbove(double factor, double best_ns) {
  constexpr double kMostAbove = 5e6;
  return factor > 0 ? std::min(factor * best_ns, best_ns + kMostAbove) : 0;
}

}  // namespace loopfleet::client
