#include "worker/verification/shared_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

namespace loopfleet::worker {
namespace {

// Holds whether the host provides the pages at once or on first use.
TEST(SharedMemoryTest, MemoryInBlocksIsZeroedAndWhole) {
  for (const std::size_t wanted : {std::size_t{1}, std::size_t{5} << 20}) {
    const auto memory = SharedMemory::Create(wanted, SharedMemory::Pages::kInBlocks);
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ(memory->bytes().size(), SharedMemory::SizeOf(wanted, SharedMemory::Pages::kInBlocks));
    EXPECT_TRUE(
        std::ranges::all_of(memory->bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

}  // namespace
}  // namespace loopfleet::worker
