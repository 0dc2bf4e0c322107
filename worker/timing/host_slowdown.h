#pragma once
// HostSlowdown: how much neighbours slow the core of this host, learned from the probes of
// contended rounds. A second measurement of a kernel may meet any of these neighbours. Belongs to
// one thread.

#include <array>
#include <cstddef>

namespace loopfleet::worker {

class HostSlowdown {
 public:
  // `slowdown`: Samples::slowdown of a contended round.
  void Observe(double slowdown);
  // 95 of 100 are at most this large; of the last kWindow.
  double factor() const { return factor_; }

 private:
  static constexpr std::size_t kWindow = 128;
  static constexpr std::size_t kLeast = 20;
  // Two threads share a core, so one takes at most half of the other's time. A larger slowdown is
  // that of an interruption.
  static constexpr double kMost = 2;

  std::array<double, kWindow> slowdowns_{};
  std::size_t count_ = 0;
  double factor_ = kMost;  // until kLeast are known
};

}  // namespace loopfleet::worker
