#pragma once
// ClockReading: the clock of a core, from timed chains of dependent operations. An interrupt, or
// another virtual machine, only makes a chain longer: by 3 % as well as eightfold, and a figure
// that is stated at such a clock is too quick by as much. So the quickest chain counts, and only
// once another one or the last reading confirms it.

namespace loopfleet::worker {

class ClockReading {
 public:
  // `last_mhz`: the reading before; 0: none.
  explicit ClockReading(double last_mhz) : last_mhz_(last_mhz) {}

  // A chain's clock.
  void Add(double mhz);
  // Whether no further chain is needed, or would help.
  bool is_sure() const { return is_confirmed_ || chains_ == kMostChains; }
  double mhz() const { return quickest_mhz_; }

  static constexpr int kMostChains = 8;  // 32 us

 private:
  double last_mhz_ = 0;
  double quickest_mhz_ = 0;
  bool is_confirmed_ = false;
  int chains_ = 0;
};

}  // namespace loopfleet::worker
