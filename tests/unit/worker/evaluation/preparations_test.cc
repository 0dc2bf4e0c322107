#include "worker/evaluation/preparations.h"

#include <gtest/gtest.h>

#include <optional>

namespace loopfleet::worker {
namespace {

TEST(PreparationsTest, WhatIsUnderWayWasThere) {
  Preparations all;
  const auto first = all.Now();
  EXPECT_FALSE(all.WereAnySince(first));
  std::optional<Preparations::UnderWay> one(std::in_place, all);
  EXPECT_TRUE(all.WereAnySince(first));  // began since
  const auto within = all.Now();
  EXPECT_TRUE(all.WereAnySince(within));  // was under way
  one.reset();
  EXPECT_TRUE(all.WereAnySince(within));  // was under way then, though it has ended
  EXPECT_FALSE(all.WereAnySince(all.Now()));
}

TEST(PreparationsTest, EachOfSeveralCounts) {
  Preparations all;
  std::optional<Preparations::UnderWay> one(std::in_place, all);
  std::optional<Preparations::UnderWay> two(std::in_place, all);
  one.reset();
  const auto within = all.Now();
  EXPECT_TRUE(all.WereAnySince(within));
  two.reset();
  EXPECT_FALSE(all.WereAnySince(all.Now()));
  {
    const Preparations::UnderWay brief(all);
  }
  EXPECT_TRUE(all.WereAnySince(within));
}

}  // namespace
}  // namespace loopfleet::worker
