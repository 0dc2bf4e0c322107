#include "coordinator/memory_budget.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

TEST(MemoryBudget, ALimitOfMemoryLeavesAnEighthForTheRest) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  for (const std::uint64_t bytes : {256 * kMiB, 512 * kMiB, 4096 * kMiB, (kMiB << 20)}) {
    const MemoryBudget budget(bytes);
    const std::uint64_t all = budget.unfinished_jobs + budget.undurable_jobs + budget.outcomes +
                              2 * budget.requests + 2 * budget.unread;
    EXPECT_LE(all, bytes / 16 * 11) << bytes;  // three more for what ZeroMQ holds and connections
    EXPECT_GE(budget.requests, 8 * wire::kMaxMessageBytes) << bytes;
    EXPECT_GE(budget.unreceived_messages, 2) << bytes;
    EXPECT_EQ(budget.connections * (kMiB / 4), bytes / 8) << bytes;
  }
}

TEST(MemoryBudget, OneClientMayNotTakeAll) {
  const MemoryBudget budget(std::uint64_t{512} << 20);
  Limits limits;
  budget.Apply(limits);
  EXPECT_EQ(limits.max_unfinished_bytes, budget.unfinished_jobs);
  EXPECT_LT(limits.max_unfinished_bytes_per_client, limits.max_unfinished_bytes);
  EXPECT_EQ(limits.max_undurable_outcome_bytes, budget.outcomes);
}

}  // namespace
}  // namespace loopfleet::coordinator
