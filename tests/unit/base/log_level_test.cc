#include "common/base/log_level.h"

#include <gtest/gtest.h>

namespace loopfleet::log {
namespace {

TEST(LogLevelTest, HasItsNames) {
  EXPECT_EQ(ParseLevel("debug"), Level::kDebug);
  EXPECT_EQ(ParseLevel("info"), Level::kInfo);
  EXPECT_EQ(ParseLevel("warning"), Level::kWarning);
  EXPECT_EQ(ParseLevel("error"), Level::kError);
  EXPECT_FALSE(ParseLevel("Info"));
  EXPECT_FALSE(ParseLevel(""));
}

}  // namespace
}  // namespace loopfleet::log
