#include "common/base/base64.h"

#include <gtest/gtest.h>

namespace loopfleet {
namespace {

TEST(Base64, IsPaddedToFours) {
  EXPECT_EQ(Base64Of(""), "");
  EXPECT_EQ(Base64Of("f"), "Zg==");
  EXPECT_EQ(Base64Of("fo"), "Zm8=");
  EXPECT_EQ(Base64Of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64Of("\xfb\xff"), "+/8=");
}

}  // namespace
}  // namespace loopfleet
