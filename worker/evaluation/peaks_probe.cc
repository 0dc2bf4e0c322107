#include "worker/evaluation/peaks_probe.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "worker/timing/device_meter.h"

namespace loopfleet::worker {
namespace {

// What a chain of loads runs through. Half of a cache is certainly in it. The last one is shared:
// of it, no more than four times the second one, which the TLB also reaches. Memory's is evicted
// before (LoadLatencyNs), so it need not be larger than the caches.
struct Level {
  std::string_view name;
  std::uint64_t bytes = 0;
};
std::vector<Level> LevelsOf(const HardwareFacts& hardware) {
  constexpr std::uint64_t kLeastMemory = std::uint64_t{64} << 20;
  constexpr std::uint64_t kMostMemory = std::uint64_t{128} << 20;
  std::vector<Level> levels = {
      {"l1_load_ns", hardware.l1d_bytes / 2},
      {"l2_load_ns", hardware.l2_bytes / 2},
      {"l3_load_ns", std::min(hardware.l3_bytes / 2, 4 * hardware.l2_bytes)}};
  std::erase_if(levels, [](const Level& level) { return level.bytes == 0; });
  levels.push_back(
      {"memory_load_ns", std::clamp(2 * hardware.l3_bytes, kLeastMemory, kMostMemory)});
  return levels;
}

}  // namespace

std::expected<Observed, Failure> ObservePeaks(TimingSlot& slot, const HardwareFacts& hardware) {
  if (!slot.TakeCore()) {
    return std::unexpected(Failure{.code = FailureCode::kUnstableTiming,
                                   .message = "other workers of this host kept the timing core"});
  }
  const std::vector<Level> levels = LevelsOf(hardware);
  std::vector<std::uint64_t> blocks;
  for (const Level& level : levels) blocks.push_back(level.bytes);
  const auto reading = slot.MeasureDevice(hardware, blocks);
  if (!reading) return std::unexpected(reading.error());
  const DevicePeaks peaks = PeaksOf(*reading, hardware.clock_mhz);
  Observed observed;
  const auto add = [&](std::string_view name, double value) {
    if (value > 0) observed.values.emplace(name, value);
  };
  add("clock_mhz", reading->clock_mhz);
  add("flop_per_second", peaks.flop_per_second);
  add("read_bytes_per_second", peaks.read_bytes_per_second);
  add("triad_bytes_per_second", peaks.triad_bytes_per_second);
  for (std::size_t i = 0; i < levels.size(); ++i) add(levels[i].name, reading->load_ns[i]);
  return observed;
}

}  // namespace loopfleet::worker
