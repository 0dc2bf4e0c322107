#include "worker/host/cache_size.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

TEST(CacheSizeTest, AreAsSysfsWritesThem) {
  EXPECT_EQ(ParseCacheSize("32K"), 32U << 10);
  EXPECT_EQ(ParseCacheSize("36M"), 36U << 20);
  EXPECT_EQ(ParseCacheSize(""), 0U);
  EXPECT_EQ(ParseCacheSize("K"), 0U);
  EXPECT_EQ(ParseCacheSize("12"), 0U);
  EXPECT_EQ(ParseCacheSize("12KB"), 0U);
}

}  // namespace
}  // namespace loopfleet::worker
