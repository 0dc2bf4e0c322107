#include "worker/verification/guarded_buffers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace loopfleet::worker {
namespace {

BufferLayout LayoutOf(std::size_t blocks) {
  constexpr std::uint64_t kBlock = std::uint64_t{8} << 20;  // bytes: whole huge pages
  const std::uint64_t count = blocks * kBlock / sizeof(float) - 1'000;
  return LayOut({&count, 1}, 0);
}

TEST(GuardedBuffersTest, ALargeOneHasItsTurnBeforeSmallOnesThatCameLater) {
  const std::size_t unit = GuardedBufferPool({}).Take(LayoutOf(1)).value()->memory().bytes().size();
  GuardedBufferPool pool({.max_bytes = 3 * unit});
  auto one = pool.Take(LayoutOf(1)).value();
  auto two = pool.Take(LayoutOf(1)).value();
  std::shared_ptr<GuardedBuffers> large;
  std::jthread first([&] { large = pool.Take(LayoutOf(2)).value(); });
  while (pool.CountWaiting() < 1) std::this_thread::yield();
  std::atomic<bool> has_small = false;
  std::jthread second([&] {
    const auto small = pool.Take(LayoutOf(1)).value();  // would fit
    has_small = true;
  });
  while (pool.CountWaiting() < 2 && !has_small) std::this_thread::yield();
  EXPECT_FALSE(has_small);
  one.reset();
  first.join();
  EXPECT_FALSE(has_small) << "the large one took what was left";
  two.reset();
  second.join();
  EXPECT_TRUE(large);
}

}  // namespace
}  // namespace loopfleet::worker
