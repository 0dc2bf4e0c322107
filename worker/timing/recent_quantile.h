#pragma once
// RecentQuantile: what 95 of 100 recent values are at most. So a worker learns of its host how far
// two moments of a kernel lie apart, and how much neighbours slow the core: samples of one round
// share what a moment has (clock, neighbours), so an interval of samples alone would claim too
// much. Belongs to one thread.

#include <array>
#include <cstddef>

namespace loopfleet::worker {

class RecentQuantile {
 public:
  // `unknown`: what value() is before kLeast values.
  explicit RecentQuantile(double unknown) : value_(unknown) {}

  void Observe(double value);
  // Of the last kWindow.
  double value() const { return value_; }

 private:
  static constexpr std::size_t kWindow = 128;
  static constexpr std::size_t kLeast = 20;

  std::array<double, kWindow> values_{};
  std::size_t count_ = 0;
  double value_ = 0;
};

}  // namespace loopfleet::worker
