#include "common/base/number_in.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace loopfleet {
namespace {

TEST(NumberIn, TheWholeTextIsTheNumber) {
  EXPECT_EQ(NumberIn<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(NumberIn<int>("-3"), -3);
  EXPECT_EQ(NumberIn<double>("2.5"), 2.5);
  for (const char* text : {"", "65536", "-1", "+1", " 1", "1 ", "1.5", "0x1", "one"}) {
    EXPECT_FALSE(NumberIn<std::uint16_t>(text)) << text;
  }
}

}  // namespace
}  // namespace loopfleet
