#include "common/base/counted.h"

#include <gtest/gtest.h>

namespace loopfleet {
namespace {

TEST(CountedTest, NounFollowsTheCount) {
  EXPECT_EQ(Counted(0, "job", "jobs"), "0 jobs");
  EXPECT_EQ(Counted(1, "job waits", "jobs wait"), "1 job waits");
  EXPECT_EQ(Counted(2, "job waits", "jobs wait"), "2 jobs wait");
}

TEST(CountedTest, CommasEveryThreeDigits) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(1'000), "1,000");
  EXPECT_EQ(Counted(1'234'567, "job", "jobs"), "1,234,567 jobs");
}

}  // namespace
}  // namespace loopfleet
