#pragma once
// SlotTime: the time that a kernel's rounds take on the timing core besides its samples, by step.
// The executor child measures it; the metrics show it. A value.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loopfleet::worker {

enum class SlotStep : std::uint8_t {
  kTake,   // sending the previous reply, receiving the request, preparing
  kMap,    // mapping memory that is not mapped yet
  kWarm,   // loading what the kernel uses into the caches, or evicting it
  kProbe,  // throughput probes
  kClock,  // readings of the core's clock
  kWait,   // probes of a contended core until it is quiet
  kTry,    // runs that are not samples (warm-up, finding the iterations), and judging samples
};
inline constexpr std::size_t kSlotSteps = 7;

// The metric label, such as "slot_take".
std::string_view SlotStepLabel(SlotStep step);

struct SlotTime {
  std::array<std::uint64_t, kSlotSteps> ns{};

  std::uint64_t& operator[](SlotStep step) { return ns[static_cast<std::size_t>(step)]; }
  std::uint64_t operator[](SlotStep step) const { return ns[static_cast<std::size_t>(step)]; }
  std::uint64_t total_ns() const;
  // Limits the total to `most_ns`: a child cannot claim more time than has passed.
  void LimitTo(std::uint64_t most_ns);
  SlotTime& operator+=(const SlotTime& other);
  friend bool operator==(const SlotTime&, const SlotTime&) = default;
};

// What the timing slot is used for: exactly one of these at every moment.
enum class Activity : std::uint8_t {
  kIdle,     // no job is held
  kWait,     // jobs are held; another worker of this host has the core, or nothing has begun yet
  kCompile,  // the slot is empty; the most advanced job is being rebuilt and compiled
  kVerify,   // the slot is empty; the most advanced job is being verified
  kMeasure,  // a kernel is on the slot and yields a figure
  kCanary,   // canaries are on the slot
  kLost,     // a kernel was on the slot and yielded no figure: crashed, too long, too contended
};
inline constexpr std::size_t kActivities = 7;
std::string_view ActivityName(Activity activity);

// The label, beside those of the stages, of the time that a kernel takes of the slot outside its
// timed batches. The labels of SlotStep break it down.
inline constexpr std::string_view kSlotOverheadLabel = "slot_overhead";

}  // namespace loopfleet::worker
