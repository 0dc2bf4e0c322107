#pragma once
// SlotTime: what a kernel's looks take of the timing core besides its samples, step by step. The
// executor child measures it; the metrics show it. A value.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loopfleet::worker {

enum class SlotStep : std::uint8_t {
  kTake,   // sending the reply before, receiving the request and getting ready for it
  kMap,    // mapping memory that is not mapped yet
  kWarm,   // bringing what the kernel uses into the caches, or out of them
  kProbe,  // throughput probes
  kClock,  // readings of the core's clock
  kWait,   // probes while the core was contended, until it was quiet
  kTry,    // runs that are no sample (they warm up, or find how many fill one), and judging samples
};
inline constexpr std::size_t kSlotSteps = 7;

// As a label of metrics: "slot_take".
std::string_view SlotStepLabel(SlotStep step);

struct SlotTime {
  std::array<std::uint64_t, kSlotSteps> ns{};

  std::uint64_t& operator[](SlotStep step) { return ns[static_cast<std::size_t>(step)]; }
  std::uint64_t operator[](SlotStep step) const { return ns[static_cast<std::size_t>(step)]; }
  std::uint64_t total_ns() const;
  // Leaves no more than that in all; a child's word is bounded by what passed.
  void LimitTo(std::uint64_t most_ns);
  SlotTime& operator+=(const SlotTime& other);
  friend bool operator==(const SlotTime&, const SlotTime&) = default;
};

// What the slot's time goes on: at every moment exactly one of these.
enum class Activity : std::uint8_t {
  kIdle,     // no job is here
  kWait,     // jobs are here; other workers of this host have the core, or nothing has begun yet
  kCompile,  // the slot is empty: the job that is furthest is being rebuilt and compiled
  kVerify,   // the slot is empty: the job that is furthest is being verified
  kMeasure,  // a kernel is on the slot, and its figure was worth it
  kCanary,   // kernels that are always the same
  kLost,     // a kernel was on the slot, and there is no figure: crashed, too long, too contended
};
inline constexpr std::size_t kActivities = 7;
std::string_view ActivityName(Activity activity);

// The label, beside those of the stages, for what a kernel takes of the slot outside its timed
// batches. Those of SlotStep say what that goes on.
inline constexpr std::string_view kSlotOverheadLabel = "slot_overhead";

}  // namespace loopfleet::worker
