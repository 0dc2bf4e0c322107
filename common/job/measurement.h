#pragma once
// Measurement: how long one run of a verified kernel takes, and how far that figure can be trusted.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet {

// Which precision was reached: the relative half-width of the interval round the median. A only
// where two moments agree on it.
enum class Grade : std::uint8_t {
  kA,  // within 1 %
  kB,  // within 5 %
  kC,  // worse
};
std::string_view GradeName(Grade grade);  // "A"
inline constexpr double kGradeASpread = 0.01;
Grade GradeOf(double spread);  // at best
// An interval of a greater half-width, relative to its median, says nothing: UNSTABLE_TIMING.
inline constexpr double kWidestSpread = 0.5;
// Fewer accepted samples than this, and the figures are over all but the preempted ones.
inline constexpr std::size_t kLeastAccepted = 3;

// Bits of a sample's flag.
enum SampleFlag : std::uint8_t {
  kSampleAccepted = 0,
  kSampleContended = 1,  // a throughput probe beside it was slow: something else used the core
  kSamplePreempted = 2,  // the system ran something else on the core in its middle
  kSampleThrottled = 4,  // the device was held back meanwhile, by heat or power
  kSampleApart = 8,      // of a moment whose samples do not agree with those that count
};

// What a GPU's sensors said while it timed a kernel; 0: not told.
struct DeviceState {
  double temperature_c = 0;            // the highest reading
  double power_w = 0;                  // the highest reading
  double memory_clock_mhz = 0;         // right after the timing
  std::uint64_t throttle_reasons = 0;  // all that were seen: bits of nvmlClocksThrottleReasons
  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};
// "software power cap"; bits without a name are a number, last.
std::vector<std::string> ThrottleReasons(std::uint64_t reasons);

// How many samples there were before retention took some or all of them away (docs/DATABASE.md).
// Whatever was made of them (median, interval, grade) stays as it was.
struct Thinned {
  std::uint32_t samples_before = 0;
  std::uint32_t accepted_before = 0;
  friend bool operator==(const Thinned&, const Thinned&) = default;
};

// Times are stated at the device's reference clock (HardwareFacts::clock_mhz): what was read off
// the wall, times the clock while the kernel was timed, divided by the reference. Where either is
// not known (0), they are what was read off the wall. See docs/MEASUREMENT.md.
struct Measurement {
  // All in nanoseconds for one run of the kernel; over the accepted samples, or over all that
  // were not preempted where fewer than three were accepted (then the grade is C).
  double elapsed_ns = 0;      // median
  double elapsed_low_ns = 0;  // order-statistic interval round the median, about 95 %
  double elapsed_high_ns = 0;
  double elapsed_min_ns = 0;
  double elapsed_mean_ns = 0;
  double spread = 0;  // (high - low) / (2 * median)
  Grade grade = Grade::kC;
  std::uint64_t iterations_per_sample = 0;        // runs in each timed batch
  std::vector<double> samples_ns;                 // every timed batch, divided by its iterations
  std::vector<std::uint8_t> sample_flags;         // SampleFlag bits, one for each sample
  std::optional<Thinned> thinned = std::nullopt;  // none: every sample is there
  // The clock of the core right before and right after the timing; 0: not measured.
  double clock_before_mhz = 0;
  double clock_after_mhz = 0;
  std::optional<DeviceState> device;  // none: no GPU, or one that says nothing of itself
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// Of the samples that were taken, also where they are not there any more.
std::size_t SampleCount(const Measurement& measurement);
std::size_t AcceptedSamples(const Measurement& measurement);
// Those that its figures are over, ascending. Of one that was thinned they are not known.
std::vector<double> CountedSamples(const Measurement& measurement);
// The clock while the kernel was timed: the mean of before and after; 0: not measured.
double ClockMhz(const Measurement& measurement);
// The clock changed by more than 1 % while the kernel was timed; such a figure is not graded A.
bool ClockMoved(const Measurement& measurement);

// flop_count / elapsed: work per nanosecond is 1e9 per second.
inline double GflopPerSecond(std::uint64_t flop_count, const Measurement& measurement) {
  return static_cast<double>(flop_count) / measurement.elapsed_ns;
}

}  // namespace loopfleet
