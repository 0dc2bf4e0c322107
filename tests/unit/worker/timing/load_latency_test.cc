#include "worker/timing/load_latency.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

// A thousandfold difference in size: no load on the host makes the first cache slower than memory.
TEST(LoadLatency, MemoryIsSlowerThanTheFirstCache) {
  const SystemStopwatch stopwatch;
  const auto cache = LoadLatencyNs(stopwatch, 16 << 10);
  const auto memory = LoadLatencyNs(stopwatch, std::size_t{96} << 20);
  ASSERT_TRUE(cache && memory);
  EXPECT_GT(*cache, 0);
  EXPECT_LT(*cache, *memory);
}

TEST(LoadLatency, TheSmallestBlockHasSeveralLines) {
  EXPECT_GT(LoadLatencyNs(SystemStopwatch(), 0).value_or(0), 0);
}

}  // namespace
}  // namespace loopfleet::worker
