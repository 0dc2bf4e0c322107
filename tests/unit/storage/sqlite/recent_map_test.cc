// What is used stays, and what is not is forgotten.

#include "storage/sqlite/recent_map.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace loopfleet::storage {
namespace {

TEST(RecentMapTest, AnEntryInUseOutlivesAnyNumberOfOthers) {
  RecentMap<int, int> map(8);
  map.Add(-1, 42);
  for (int key = 0; key < 1000; ++key) {
    map.Add(key, key);
    if (key % 4 != 0) continue;
    const auto* entry = map.Find(-1);
    ASSERT_NE(entry, nullptr) << key;
    EXPECT_EQ(entry->second, 42);
  }
}

TEST(RecentMapTest, ItHoldsTheLastOnesAndNoMoreThanTwice) {
  RecentMap<int, int> map(8);
  for (int key = 0; key < 1000; ++key) {
    map.Add(key, key);
    EXPECT_LE(map.size(), 16u);
    for (int last = std::max(0, key - 7); last <= key; ++last) {
      ASSERT_NE(map.Find(last), nullptr) << last << " at " << key;
    }
  }
  EXPECT_EQ(map.Find(900), nullptr);
  map.Clear();
  EXPECT_EQ(map.Find(999), nullptr);
  EXPECT_EQ(map.size(), 0u);
}

}  // namespace
}  // namespace loopfleet::storage
