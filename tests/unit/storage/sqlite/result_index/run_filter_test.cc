// Filters miss nothing, and let few others pass.

#include "storage/sqlite/result_index/run_filter.h"

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace loopfleet::storage {
namespace {

TEST(RunFilterTest, WhatWasAddedPasses) {
  constexpr std::size_t kKeys = 1000;
  SplitMix64 random(1);
  RunFilter filter = NewFilter(kKeys);
  std::vector<ResultHash> hashes;
  for (std::size_t i = 0; i < kKeys; ++i) AddTo(filter, hashes.emplace_back(random.Next()));
  for (const ResultHash hash : hashes) EXPECT_TRUE(MayContain(filter, hash));
}

TEST(RunFilterTest, FewStrangersPass) {
  SplitMix64 random(2);
  RunFilter filter = NewFilter(100'000);
  for (int i = 0; i < 100'000; ++i) AddTo(filter, random.Next());
  int passed = 0;
  for (int i = 0; i < 100'000; ++i) passed += MayContain(filter, random.Next());
  EXPECT_LT(passed, 40);  // about 1 in 10,000
}

}  // namespace
}  // namespace loopfleet::storage
