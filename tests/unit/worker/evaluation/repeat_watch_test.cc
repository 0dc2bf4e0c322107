#include "worker/evaluation/repeat_watch.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

TEST(RepeatWatch, ComparesWithTheLastFigureOfTheSameCode) {
  RepeatWatch watch;
  EXPECT_EQ(watch.Observe({.code_hash = "a"}, 100), std::nullopt);
  EXPECT_EQ(watch.Observe({.code_hash = "b"}, 500), std::nullopt);
  EXPECT_DOUBLE_EQ(watch.Observe({.code_hash = "a"}, 102).value(), 0.02);
  EXPECT_DOUBLE_EQ(watch.Observe({.code_hash = "a"}, 102).value(), 0);
  EXPECT_DOUBLE_EQ(watch.Observe({.code_hash = "a"}, 51).value(), 1);
}

TEST(RepeatWatch, OtherConditionsAreOtherFigures) {
  RepeatWatch watch;
  EXPECT_EQ(watch.Observe({.code_hash = "a"}, 100), std::nullopt);
  EXPECT_EQ(watch.Observe({.code_hash = "a", .threads = 2}, 50), std::nullopt);
  EXPECT_EQ(watch.Observe({.code_hash = "a", .cache = CacheState::kCold}, 900), std::nullopt);
}

TEST(RepeatWatch, ForgetsWhatWasSeenLongestAgo) {
  RepeatWatch watch(2);
  EXPECT_FALSE(watch.Observe({.code_hash = "a"}, 1));
  EXPECT_FALSE(watch.Observe({.code_hash = "b"}, 1));
  EXPECT_TRUE(watch.Observe({.code_hash = "a"}, 1));  // b is the older one now
  EXPECT_FALSE(watch.Observe({.code_hash = "c"}, 1));
  EXPECT_TRUE(watch.Observe({.code_hash = "a"}, 1));
  EXPECT_FALSE(watch.Observe({.code_hash = "b"}, 1));
}

}  // namespace
}  // namespace loopfleet::worker
