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
