#pragma once
// Measurement: how long one iteration of a verified kernel takes, and how far to trust that figure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"

namespace loopfleet {

// The precision reached: the half-width of the interval round the median, relative to the median. A
// also requires that two rounds agree.
enum class Grade : std::uint8_t {
  kA,  // within 1 %
  kB,  // within 5 %
  kC,  // wider, or too few samples were accepted
  kD,  // no more than an order of magnitude: wider than kMaxSpread, or every sample was preempted.
       // Answers no later job
};
inline constexpr std::array kAllGrades = {Grade::kA, Grade::kB, Grade::kC, Grade::kD};
template <>
struct EnumNames<Grade> {
  static constexpr std::array kAll = {NamedValue{Grade::kA, "A"}, NamedValue{Grade::kB, "B"},
                                      NamedValue{Grade::kC, "C"}, NamedValue{Grade::kD, "D"}};
};
inline constexpr double kGradeASpread = 0.01;
Grade GradeOf(double spread);  // the best grade that this spread allows
// A measurement with a wider spread is of grade D.
inline constexpr double kMaxSpread = 0.5;
// With fewer accepted samples, the figures are over all samples that were not preempted; if there
// are none, over all.
inline constexpr std::size_t kLeastAccepted = 3;

// Bits of a sample's flag.
enum SampleFlag : std::uint8_t {
  kSampleAccepted = 0,
  kSampleContended = 1,     // a probe beside it was slow: something else used the core
  kSamplePreempted = 2,     // the system ran something else on the core during it
  kSampleThrottled = 4,     // heat or a power limit slowed the device
  kSampleOutlierRound = 8,  // accepted, but its round disagrees with the rounds that count
};

// Readings of a GPU's sensors while it timed a kernel; 0: not reported.
struct DeviceState {
  double temperature_c = 0;            // the highest reading
  double power_w = 0;                  // the highest reading
  double memory_clock_mhz = 0;         // right after the timing
  std::uint64_t throttle_reasons = 0;  // all that occurred; bits of nvmlClocksThrottleReasons
  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};
// The names of the bits, such as "software power cap". Unnamed bits come last, as one number.
std::vector<std::string> ThrottleReasons(std::uint64_t reasons);

// Sample counts before retention removed some or all samples (docs/DATABASE.md). The figures
// (median, interval, grade) are unchanged.
struct Thinned {
  std::uint32_t samples_before = 0;
  std::uint32_t accepted_before = 0;
  friend bool operator==(const Thinned&, const Thinned&) = default;
};

// Times are stated at the device's reference clock (HardwareFacts::clock_mhz): wall time, times the
// clock during timing, divided by the reference clock. If either clock is unknown (0), they are
// wall time. See docs/MEASUREMENT.md.
struct Measurement {
  // Nanoseconds per iteration, over the accepted samples; over all samples that were not preempted
  // if fewer than three were accepted (then the grade is C or D).
  double elapsed_ns = 0;      // median
  double elapsed_low_ns = 0;  // order-statistic interval round the median, about 95 %
  double elapsed_high_ns = 0;
  double elapsed_min_ns = 0;
  double elapsed_mean_ns = 0;
  double spread = 0;  // (high - low) / (2 * median)
  Grade grade = Grade::kC;
  std::uint64_t iterations_per_sample = 0;        // in each timed batch
  std::vector<double> samples_ns;                 // every timed batch, divided by its iterations
  std::vector<std::uint8_t> sample_flags;         // SampleFlag bits, one for each sample
  std::optional<Thinned> thinned = std::nullopt;  // none: no sample was removed
  // The clock of the core right before and right after the timing; 0: not measured.
  double clock_before_mhz = 0;
  double clock_after_mhz = 0;
  std::optional<DeviceState> device;  // none: no GPU, or one without sensors
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// Counts of the samples taken, including those that retention removed.
std::size_t SampleCount(const Measurement& measurement);
std::size_t AcceptedSamples(const Measurement& measurement);
// The samples that the figures are over, ascending. Unknown for a thinned measurement.
std::vector<double> UsedSamples(const Measurement& measurement);
// The clock while the kernel was timed: the mean of before and after; 0: not measured.
double ClockMhz(const Measurement& measurement);
// The clock changed by more than 1 % while the kernel was timed: the grade is not A.
bool ClockMoved(const Measurement& measurement);

// Operations per nanosecond are 1e9 operations per second.
inline double GflopPerSecond(std::uint64_t flop_count, const Measurement& measurement) {
  return static_cast<double>(flop_count) / measurement.elapsed_ns;
}

}  // namespace loopfleet
