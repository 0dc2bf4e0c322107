#pragma once
// Plausibility: whether this device can have produced a figure. A rate above the measured peak is
// refused: either the kernel did not do the work, or the clock is wrong.

#include <cstdint>
#include <optional>
#include <string>

#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/measurement.h"

namespace loopfleet {

// Peaks are measured, too, and may be a little low.
inline constexpr double kFlopMargin = 1.10;
inline constexpr double kBandwidthMargin = 1.5;

// No CPU or GPU runs slower or faster. 0: the clock is not known.
inline constexpr double kLeastClockMhz = 10;
inline constexpr double kMostClockMhz = 20'000;
constexpr bool IsPlausibleClock(double mhz) {
  return mhz == 0 || (mhz >= kLeastClockMhz && mhz <= kMostClockMhz);
}

// Why these are not the figures of a measurement just made; nullopt: they can be. For what comes
// from outside: a report of a worker, a row of a shared database.
std::optional<std::string> WhyNoMeasurement(const Measurement& measurement);

struct WorkDone {
  std::uint64_t flop_count = 0;    // of one iteration
  std::uint64_t output_bytes = 0;  // each is written in one iteration
  std::uint32_t threads = 1;
};

// UNSTABLE_TIMING if a figure is impossible; otherwise nullopt. Bandwidth is judged only for
// outputs more than twice as large as the last cache: part of those must have been written to
// memory.
std::optional<Failure> CheckPlausible(const Measurement& measurement, const WorkDone& work,
                                      const HardwareFacts& hardware);

// UNSTABLE_TIMING for a figure whose grade is worse than the job accepts.
std::optional<Failure> CheckGrade(const Measurement& measurement, Grade min_grade);

}  // namespace loopfleet
