#include "worker/workload.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

#include "tests/unit/worker/fake_backend.h"
#include "tests/unit/worker/workload_here.h"

namespace loopfleet::worker {
namespace {

TEST(WorkloadTest, InputsAreSeededAndExpectedOutputsAreTheirSums) {
  const looptree::LoopTree tree = AddOf(1000).start;
  const auto one = MakeWorkload(tree, 1, ComputeHere).value();
  const auto again = MakeWorkload(tree, 1, ComputeHere).value();
  const auto other = MakeWorkload(tree, 2, ComputeHere).value();
  const auto bytes = [](const Workload& workload) {
    return std::span<const std::byte>(workload.inputs.bytes());
  };
  ASSERT_EQ(bytes(*one).size(), bytes(*again).size());
  EXPECT_EQ(std::memcmp(bytes(*one).data(), bytes(*again).data(), bytes(*one).size()), 0);
  EXPECT_NE(std::memcmp(bytes(*one).data(), bytes(*other).data(), bytes(*one).size()), 0);
  const auto input = [&](std::size_t i) {
    return reinterpret_cast<const float*>(bytes(*one).data() + one->layout.buffers[i].offset);
  };
  ASSERT_EQ(one->expected.size(), 1U);
  EXPECT_TRUE(one->expected[0].tolerance.empty());
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(one->expected[0].rounded[i], input(0)[i] + input(1)[i]);
    EXPECT_NE(input(0)[i], 0);
  }
}

TEST(WorkloadTest, TheCacheKeepsWhatFitsAndVariesTheInputs) {
  WorkloadCache cache({.max_bytes = 5'000'000, .seeds = 2});  // inputs take a huge page at least
  const looptree::LoopTree tree = AddOf(1000).start;
  const auto first = cache.Get(tree, ComputeHere).value();
  const auto second = cache.Get(tree, ComputeHere).value();
  EXPECT_NE(first->seed, second->seed);
  EXPECT_EQ(cache.Get(tree, ComputeHere).value(), first);
  EXPECT_EQ(cache.Get(tree, ComputeHere).value(), second);
  const looptree::LoopTree big = AddOf(100'000).start;
  ASSERT_TRUE(cache.Get(big, ComputeHere));  // drives everything else out
  ASSERT_TRUE(cache.Get(big, ComputeHere));
  EXPECT_NE(cache.Get(tree, ComputeHere).value(), first);
}

// What jobs work with counts, too, not only what is kept.
TEST(WorkloadTest, WhatIsInFlightIsBounded) {
  const std::size_t each = MakeWorkload(AddOf(1000).start, 1, ComputeHere).value()->bytes();
  WorkloadCache cache({.max_bytes = 1, .seeds = 1, .max_total_bytes = 2 * each});
  auto one = cache.Get(AddOf(1000).start, ComputeHere).value();
  auto two = cache.Get(AddOf(1001).start, ComputeHere).value();
  std::atomic<bool> is_asked_for = false;
  std::atomic<bool> is_there = false;
  std::jthread third([&] {
    is_asked_for = true;
    const auto three = cache.Get(AddOf(1002).start, ComputeHere).value();
    is_there = true;
  });
  while (!is_asked_for) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(is_there);
  one.reset();  // nobody works with it any more
  third.join();
  EXPECT_TRUE(is_there);
  two.reset();
  EXPECT_TRUE(cache.Get(AddOf(2000).start, ComputeHere));  // kept ones make room
  EXPECT_TRUE(cache.Get(AddOf(3000).start, ComputeHere));
}

TEST(WorkloadTest, OneAloneMayBeBiggerThanAll) {
  WorkloadCache cache({.seeds = 1, .max_total_bytes = 1});
  for (const std::int64_t size : {1000, 2000, 1000}) {
    EXPECT_TRUE(cache.Get(AddOf(size).start, ComputeHere));
  }
}

int OpenDescriptors() {
  const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<int>(std::distance(begin(entries), end(entries)));
}

TEST(WorkloadTest, ManySmallOnesDoNotUseUpTheDescriptors) {
  WorkloadCache cache({.max_count = 8, .seeds = 1});
  const int before = OpenDescriptors();
  for (int size = 1; size <= 50; ++size) ASSERT_TRUE(cache.Get(AddOf(size).start, ComputeHere));
  EXPECT_LE(OpenDescriptors(), before + 2 * 8);
  const auto kept = cache.Get(AddOf(50).start, ComputeHere).value();
  EXPECT_EQ(cache.Get(AddOf(50).start, ComputeHere).value(), kept);
}

TEST(WorkloadTest, WhatOneThreadMakesTheOthersWaitFor) {
  WorkloadCache cache({.seeds = 1});
  const looptree::LoopTree tree = AddOf(1000).start;
  std::atomic<int> made = 0;
  std::vector<std::shared_ptr<const Workload>> got(8);
  {
    std::vector<std::jthread> threads;
    for (auto& workload : got) {
      threads.emplace_back([&] {
        workload = cache
                       .Get(tree,
                            [&](const auto& of, std::uint64_t seed, const SharedMemory& inputs,
                                const SharedMemory& reference) {
                              ++made;
                              return ComputeHere(of, seed, inputs, reference);
                            })
                       .value();
      });
    }
  }
  EXPECT_EQ(made, 1);
  for (const auto& workload : got) EXPECT_EQ(workload, got[0]);
}

TEST(WorkloadTest, AFailureIsPassedOnAndNotKept) {
  WorkloadCache cache({.seeds = 1});
  const looptree::LoopTree tree = AddOf(1000).start;
  const auto failed = cache.Get(tree, [](auto&&...) -> std::expected<std::vector<bool>, Failure> {
    return std::unexpected(Failure{.code = FailureCode::kLimitFlops});
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, FailureCode::kLimitFlops);
  EXPECT_TRUE(cache.Get(tree, ComputeHere));
}

}  // namespace
}  // namespace loopfleet::worker
