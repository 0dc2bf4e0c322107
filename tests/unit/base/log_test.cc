#include "common/base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace loopfleet::log {
namespace {

TEST(LogTest, WhatPeersSayIsOneLine) {
  testing::internal::CaptureStderr();
  Init("test", Level::kInfo);
  Info("worker.said name={}", "a\n2026-01-01 error \x1b[2Jb\t\x7fü");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
  EXPECT_TRUE(
      log.ends_with(" info test worker.said name=a\\x0a2026-01-01 error \\x1b[2Jb\\x09\\x7fü\n"))
      << log;
}

}  // namespace
}  // namespace loopfleet::log
