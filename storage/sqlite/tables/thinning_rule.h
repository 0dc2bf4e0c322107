#pragma once
// ThinningRule: how many raw samples old results keep.

#include <cstdint>
#include <string>

#include "common/base/clock.h"

namespace loopfleet::storage {

struct ThinningRule {
  WallTime measured_before{};    // applies to results measured before this
  std::uint32_t keep_every = 0;  // keeps one of this many samples; 0: none
  std::string asked_by;          // the program, for people: "loopfleet db thin"
};

// How many of a result's samples the rule keeps.
inline std::uint32_t SamplesLeft(const ThinningRule& rule, std::uint32_t samples_before) {
  if (rule.keep_every == 0) return 0;
  return samples_before / rule.keep_every + (samples_before % rule.keep_every == 0 ? 0 : 1);
}

}  // namespace loopfleet::storage
