#pragma once
// Whether a figure can be true on this device. What is above the measured peak is refused: the
// kernel did not do the work, or the clock lies.

#include <cstdint>
#include <optional>

#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/measurement.h"

namespace loopfleet {

// Peaks are measured, too, and may have been measured a little low.
inline constexpr double kFlopMargin = 1.10;
inline constexpr double kBandwidthMargin = 1.5;

struct WorkDone {
  std::uint64_t flop_count = 0;    // of one run
  std::uint64_t output_bytes = 0;  // every byte of them is written
  std::uint32_t threads = 1;
};

// UNSTABLE_TIMING with what is wrong, or nothing. Bandwidth is only judged where it can be proved
// that memory was written: outputs several times as large as the last cache.
std::optional<Failure> WhyImpossible(const Measurement& measurement, const WorkDone& work,
                                     const HardwareFacts& hardware);

}  // namespace loopfleet
