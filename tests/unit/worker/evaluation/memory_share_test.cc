#include "worker/evaluation/memory_share.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(MemoryShareTest, ASmallContainerHoldsAllThatJobsMayTakeAtOnce) {
  for (const std::uint64_t memory : {kGiB / 2, 2 * kGiB, 8 * kGiB}) {
    const MemoryShare share = MemoryShare::Of(memory);
    EXPECT_LE(share.max_tensor_bytes, memory / 8);
    EXPECT_LE(share.max_written_bytes, memory / 8);
    EXPECT_LE(share.max_workload_bytes + share.max_arena_bytes + share.max_idle_arena_bytes,
              memory * 9 / 16);
    EXPECT_LE(share.max_kept_workload_bytes, share.max_workload_bytes);
    EXPECT_LE(share.max_written_bytes, share.max_arena_bytes);
  }
}

TEST(MemoryShareTest, MoreThanIsUsefulIsNotTaken) {
  EXPECT_EQ(MemoryShare::Of(1024 * kGiB).max_written_bytes, 2 * kGiB);
  EXPECT_EQ(MemoryShare::Of(1024 * kGiB).max_arena_bytes, 3 * kGiB);
}

}  // namespace
}  // namespace loopfleet::worker
