#include "common/job/plausibility.h"

#include <gtest/gtest.h>

#include <utility>

namespace loopfleet {
namespace {

HardwareFacts Device() {
  HardwareFacts facts{.l3_bytes = 32ULL << 20};
  facts.peaks = {
      .flop_per_second = 100e9, .read_bytes_per_second = 20e9, .triad_bytes_per_second = 25e9};
  return facts;
}

TEST(PlausibilityTest, UpToThePeakAndItsMarginIsPossible) {
  EXPECT_FALSE(CheckPlausible({.elapsed_ns = 10}, {.flop_count = 1'000}, Device()));
  EXPECT_FALSE(CheckPlausible({.elapsed_ns = 10}, {.flop_count = 1'099}, Device()));
}

TEST(PlausibilityTest, AboveItIsRefused) {
  const auto failure = CheckPlausible({.elapsed_ns = 10}, {.flop_count = 1'200}, Device());
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, FailureCode::kUnstableTiming);
  EXPECT_NE(failure->message.find("120 GFLOP/s"), std::string::npos) << failure->message;
}

TEST(PlausibilityTest, EachThreadHasAPeak) {
  EXPECT_FALSE(CheckPlausible({.elapsed_ns = 10}, {.flop_count = 2'000, .threads = 2}, Device()));
  EXPECT_TRUE(CheckPlausible({.elapsed_ns = 10}, {.flop_count = 3'000, .threads = 2}, Device()));
}

TEST(PlausibilityTest, WhatWasNotMeasuredRefusesNothing) {
  EXPECT_FALSE(
      CheckPlausible({.elapsed_ns = 1}, {.flop_count = 1'000'000, .output_bytes = 1ULL << 40}, {}));
}

TEST(PlausibilityTest, BandwidthOnlyWhereMemoryMustHaveBeenWritten) {
  // Any rate is possible within the caches.
  EXPECT_FALSE(CheckPlausible({.elapsed_ns = 1}, {.output_bytes = 64ULL << 20}, Device()));
  // 192 MiB beyond the caches in 1 ms would be 200 GB/s.
  EXPECT_TRUE(CheckPlausible({.elapsed_ns = 1e6}, {.output_bytes = 256ULL << 20}, Device()));
  EXPECT_FALSE(CheckPlausible({.elapsed_ns = 8e6}, {.output_bytes = 256ULL << 20}, Device()));
}

TEST(PlausibilityTest, ADevicesLastCacheIsItsSecond) {
  HardwareFacts device = Device();
  device.device = DeviceKind::kCuda;
  device.l2_bytes = std::exchange(device.l3_bytes, 0);
  EXPECT_FALSE(CheckPlausible({.elapsed_ns = 1}, {.output_bytes = 64ULL << 20}, device));
  EXPECT_TRUE(CheckPlausible({.elapsed_ns = 1e6}, {.output_bytes = 256ULL << 20}, device));
  EXPECT_FALSE(CheckPlausible({.elapsed_ns = 8e6}, {.output_bytes = 256ULL << 20}, device));
}

}  // namespace
}  // namespace loopfleet
