#include "worker/cpu/object_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace loopfleet::worker {
namespace {

TEST(ObjectCacheTest, FindsWhatWasMadeFromTheSameBytes) {
  ObjectCache cache(100);
  EXPECT_EQ(cache.Find("module"), nullptr);
  cache.Add("module", "object");
  cache.Add("other", "another");
  ASSERT_NE(cache.Find("module"), nullptr);
  EXPECT_EQ(*cache.Find("module"), "object");
  EXPECT_EQ(*cache.Find("other"), "another");
  EXPECT_EQ(cache.Find("modul"), nullptr);
}

TEST(ObjectCacheTest, WhatWasNotAskedForTheLongestGoesFirst) {
  ObjectCache cache(30);
  cache.Add("a", std::string(9, 'A'));
  cache.Add("b", std::string(9, 'B'));
  cache.Add("c", std::string(9, 'C'));
  ASSERT_NE(cache.Find("a"), nullptr);
  cache.Add("d", std::string(9, 'D'));
  EXPECT_EQ(cache.Find("b"), nullptr);
  for (const char* kept : {"a", "c", "d"}) EXPECT_NE(cache.Find(kept), nullptr) << kept;
}

TEST(ObjectCacheTest, KeepsNothingThatIsLargerThanItself) {
  ObjectCache cache(30);
  cache.Add("small", "object");
  cache.Add("large", std::string(30, 'L'));
  EXPECT_EQ(cache.Find("large"), nullptr);
  EXPECT_NE(cache.Find("small"), nullptr);
  EXPECT_FALSE(ObjectCache(0).is_kept());
}

}  // namespace
}  // namespace loopfleet::worker
