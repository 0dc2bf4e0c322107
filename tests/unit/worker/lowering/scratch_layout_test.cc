#include "worker/lowering/scratch_layout.h"

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace loopfleet::worker {
namespace {

TEST(ScratchLayout, NothingNeedsNothing) { EXPECT_EQ(LayOutScratch({}).bytes, 0U); }

TEST(ScratchLayout, LargestFirstThenTheLowestGap) {
  const std::vector<ScratchNeed> needs = {
      {.bytes = 64, .begin = 4, .end = 6},    // beside the second
      {.bytes = 256, .begin = 0, .end = 10},  // always
      {.bytes = 100, .begin = 0, .end = 4},   // gone before the first
      {.bytes = 128, .begin = 6, .end = 9},   // after the first
  };
  const ScratchLayout layout = LayOutScratch(needs);
  EXPECT_EQ(layout.offsets, (std::vector<std::uint64_t>{256, 0, 256, 256}));
  EXPECT_EQ(layout.bytes, 256U + 128U);
}

TEST(ScratchLayout, NeverOverlapsWhatLivesTogether) {
  SplitMix64 random(11);
  for (int round = 0; round < 500; ++round) {
    std::vector<ScratchNeed> needs;
    std::uint64_t alone = 0;  // bytes, if none shared
    for (std::uint64_t left = 1 + random.Below(20); left > 0; --left) {
      const auto begin = static_cast<looptree::TreeRef>(random.Below(30));
      const auto end = begin + 1 + static_cast<looptree::TreeRef>(random.Below(12));
      needs.push_back({.bytes = 4 * (1 + random.Below(200)), .begin = begin, .end = end});
      alone += (needs.back().bytes + 63) / 64 * 64;
    }
    const ScratchLayout layout = LayOutScratch(needs);
    EXPECT_LE(layout.bytes, alone);
    for (std::size_t i = 0; i < needs.size(); ++i) {
      EXPECT_EQ(layout.offsets[i] % kScratchAlignment, 0U);
      EXPECT_LE(layout.offsets[i] + needs[i].bytes, layout.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool together = needs[i].begin < needs[j].end && needs[j].begin < needs[i].end;
        const bool overlap = layout.offsets[i] < layout.offsets[j] + needs[j].bytes &&
                             layout.offsets[j] < layout.offsets[i] + needs[i].bytes;
        EXPECT_FALSE(together && overlap) << i << " and " << j;
      }
    }
  }
}

}  // namespace
}  // namespace loopfleet::worker
