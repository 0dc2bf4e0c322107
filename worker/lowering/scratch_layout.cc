#include "worker/lowering/scratch_layout.h"

#include <algorithm>
#include <numeric>

namespace loopfleet::worker {
namespace {

std::uint64_t Rounded(std::uint64_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

bool LiveTogether(const ScratchNeed& a, const ScratchNeed& b) {
  return a.begin < b.end && b.begin < a.end;
}

}  // namespace

ScratchLayout LayOutScratch(std::span<const ScratchNeed> needs) {
  std::vector<std::size_t> order(needs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return needs[i].bytes; });
  ScratchLayout layout{.offsets = std::vector<std::uint64_t>(needs.size()), .bytes = 0};
  std::vector<std::size_t> placed;
  for (std::size_t i : order) {
    const std::uint64_t bytes = Rounded(needs[i].bytes);
    // `placed` ascends by offset, so one pass finds the lowest gap.
    std::uint64_t offset = 0;
    for (std::size_t other : placed) {
      if (!LiveTogether(needs[i], needs[other])) continue;
      if (offset + bytes <= layout.offsets[other]) break;
      offset = std::max(offset, layout.offsets[other] + Rounded(needs[other].bytes));
    }
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    const auto after = std::ranges::upper_bound(placed, offset, {},
                                                [&](std::size_t p) { return layout.offsets[p]; });
    placed.insert(after, i);
  }
  return layout;
}

}  // namespace loopfleet::worker
