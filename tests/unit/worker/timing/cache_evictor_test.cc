#include "worker/timing/cache_evictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "worker/isa/core_kernels.h"
#include "worker/isa/processor.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {
namespace {

TEST(CacheEvictorTest, ReadsTwiceAsMuchAsAnyCacheHolds) {
  constexpr std::uint64_t kMebi = 1 << 20;
  EXPECT_EQ(CacheEvictor::BytesFor(32 * kMebi), 64 * kMebi);
  EXPECT_EQ(CacheEvictor::BytesFor(300 * kMebi), 600 * kMebi);
  EXPECT_EQ(CacheEvictor::BytesFor(0), 64 * kMebi) << "unknown";
  EXPECT_GE(CacheEvictor::BytesFor(1'000), 2'000U);
}

// The quickest of many: a neighbour makes neither quicker than it is. The block fits a second-level
// cache, from which it is read several times as quickly as from memory.
TEST(EvictFromCachesTest, WhatWasEvictedIsReadFromMemory) {
  constexpr int kTries = 50;
  const std::vector<float> block(64 << 10, 1.0F);
  const SystemStopwatch stopwatch;
  std::uint64_t cached = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t evicted = cached;
  volatile float sink = 0;
  const auto read = [&] {
    const std::uint64_t start = stopwatch.NowNs();
    sink = core_kernels::kPortable.read(block.data(), block.size());
    return stopwatch.NowNs() - start;
  };
  for (int i = 0; i < kTries; ++i) {
    EvictFromCaches(block.data(), block.size() * sizeof(float));
    evicted = std::min(evicted, read());
    cached = std::min(cached, read());
  }
  EXPECT_GT(static_cast<double>(evicted), 1.3 * static_cast<double>(cached));
}

}  // namespace
}  // namespace loopfleet::worker
