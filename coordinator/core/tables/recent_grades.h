#pragma once
// RecentGrades: of how many of a worker's newest figures the grade is C or D.

#include <bit>
#include <cstdint>

#include "common/job/measurement.h"

namespace loopfleet::coordinator {

class RecentGrades {
 public:
  void Add(Grade grade) {
    imprecise_ = (imprecise_ << 1) | (grade > Grade::kB ? 1U : 0U);
    if (figures_ < kMost) ++figures_;
  }
  std::uint32_t figures() const { return figures_; }  // at most 32
  std::uint32_t imprecise() const { return static_cast<std::uint32_t>(std::popcount(imprecise_)); }

 private:
  static constexpr std::uint32_t kMost = 32;

  std::uint32_t imprecise_ = 0;  // a bit for each figure, the newest first
  std::uint32_t figures_ = 0;
};

}  // namespace loopfleet::coordinator
