#include "worker/verification/buffer_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace loopfleet::worker {
namespace {

TEST(BufferLayoutTest, BuffersAreAlignedAndGuardedOnBothSides) {
  const std::array<std::uint64_t, 5> counts{1, 4096, 17, 0, 100'003};
  const BufferLayout layout = LayOut(counts, 0);
  ASSERT_EQ(layout.buffers.size(), counts.size());
  std::size_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(layout.buffers[i].offset % 64, 0U);
    EXPECT_EQ(layout.buffers[i].size, counts[i] * sizeof(float));
    EXPECT_GE(layout.buffers[i].offset, end + kGuardBytes);
    end = layout.buffers[i].end();
  }
  EXPECT_GE(layout.size, end + kGuardBytes);
  EXPECT_EQ(layout.size % 4096, 0U);
}

TEST(BufferLayoutTest, NoTwoOfAFewBuffersStartAtOnePageOffset) {
  const std::array<std::uint64_t, 4> inputs{1024, 1024, 1024, 1024};
  const std::array<std::uint64_t, 4> others{1024, 1024, 1024, 1024};
  std::set<std::size_t> offsets;
  for (const PlacedBuffer& buffer : LayOut(inputs, 0).buffers) offsets.insert(buffer.offset % 4096);
  for (const PlacedBuffer& buffer : LayOut(others, inputs.size()).buffers) {
    offsets.insert(buffer.offset % 4096);
  }
  EXPECT_EQ(offsets.size(), inputs.size() + others.size());
}

TEST(BufferLayoutTest, NoBuffers) { EXPECT_TRUE(LayOut({}, 3).buffers.empty()); }

}  // namespace
}  // namespace loopfleet::worker
