#pragma once
// Repeatability: how far two moments of one kernel lie apart on this host, learned from the rounds
// of all kernels. Samples of one round share what a moment has (clock, neighbours), so they scatter
// less than two measurements do; an interval of samples alone would claim too much. Belongs to one
// thread.

#include <array>
#include <cstddef>

namespace loopfleet::worker {

class Repeatability {
 public:
  // `difference`: of the medians of two rounds that agree, relative
  // (MeasurementRounds::MomentsApart).
  void Observe(double difference);
  // 95 of 100 differences are at most this large; of the last kWindow.
  double within() const { return within_; }

 private:
  static constexpr std::size_t kWindow = 128;
  static constexpr std::size_t kLeast = 20;
  // Before kLeast are known: just below the difference at which rounds no longer agree.
  static constexpr double kUnknown = 0.009;

  std::array<double, kWindow> differences_{};
  std::size_t count_ = 0;
  double within_ = kUnknown;
};

}  // namespace loopfleet::worker
