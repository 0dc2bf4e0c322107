#pragma once
// How many schedules a search asks for that ends after so many seconds: a batch of slow kernels
// could take longer than all of a short search.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace loopfleet::client {

// How many more fit into the time that is left, at the pace of those `told` (at least one) in the
// `took` seconds so far; twice as many as are told at most, or four, while the pace is hardly
// known.
inline std::size_t MostInTime(double seconds, double took, std::uint64_t told,
                              std::uint64_t under_way) {
  constexpr double kFirst = 4;
  const double in_time = static_cast<double>(told) / took * (seconds - took);
  const double known = std::max(kFirst, 2 * static_cast<double>(told));
  const double more = std::min(in_time, known) - static_cast<double>(under_way);
  return static_cast<std::size_t>(std::max(more, 0.0));
}

}  // namespace loopfleet::client
