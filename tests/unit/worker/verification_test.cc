#include "worker/verification.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace loopfleet::worker {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const float kPoison = std::bit_cast<float>(kPoisonBits);

TEST(VerificationTest, ExactMeansExact) {
  const ExpectedTensor expected({1, -2, 16'777'215}, {});
  EXPECT_FALSE(Compare(std::array{1.0F, -2.0F, 16'777'215.0F}, expected));
  const float off = std::nextafter(-2.0F, 0.0F);
  const auto mismatch = Compare(std::array{1.0F, off, 16'777'215.0F}, expected);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->element, 1U);
  EXPECT_EQ(mismatch->got, off);
  EXPECT_EQ(mismatch->expected, -2);
}

TEST(VerificationTest, TheSignOfZeroDoesNotMatter) {
  EXPECT_FALSE(Compare(std::array{-0.0F, 3.0F}, ExpectedTensor({0, 3}, {})));
}

TEST(VerificationTest, WhatWasNeverWrittenIsWrongWhateverIsExpected) {
  for (const double expected : {0.0, 1.0, kNan, kInf}) {
    EXPECT_TRUE(Compare(std::array{kPoison}, ExpectedTensor({expected}, {}))) << expected;
    EXPECT_TRUE(Compare(std::array{kPoison}, ExpectedTensor({expected}, {1e30}))) << expected;
  }
  const auto mismatch = Compare(std::array{kPoison}, ExpectedTensor({12}, {}));
  ASSERT_TRUE(mismatch);
  EXPECT_NE(Describe(0, *mismatch).find("never written"), std::string::npos);
}

TEST(VerificationTest, ToleranceIsPerElementAndInclusive) {
  const ExpectedTensor expected({10, 10}, {0.5, 0});
  EXPECT_FALSE(Compare(std::array{10.5F, 10.0F}, expected));
  EXPECT_EQ(Compare(std::array{10.6F, 10.0F}, expected)->element, 0U);
  EXPECT_EQ(Compare(std::array{10.5F, 10.1F}, expected)->element, 1U);
}

TEST(VerificationTest, ValuesThatFloat32CannotHoldAreRightWhenRounded) {
  EXPECT_FALSE(Compare(std::array{0.1F}, ExpectedTensor({0.1}, {0})));
}

TEST(VerificationTest, NanAndInfinityByRule) {
  EXPECT_FALSE(Compare(std::array{std::nanf("")}, ExpectedTensor({kNan}, {})));
  EXPECT_TRUE(Compare(std::array{1.0F}, ExpectedTensor({kNan}, {})));
  EXPECT_TRUE(Compare(std::array{std::nanf("")}, ExpectedTensor({1}, {100})));
  EXPECT_FALSE(Compare(std::array{static_cast<float>(kInf)}, ExpectedTensor({kInf}, {})));
  EXPECT_TRUE(Compare(std::array{static_cast<float>(-kInf)}, ExpectedTensor({kInf}, {})));
  EXPECT_FALSE(Compare(std::array{static_cast<float>(kInf)}, ExpectedTensor({1e39}, {1e33})));
  EXPECT_TRUE(Compare(std::array{static_cast<float>(kInf)}, ExpectedTensor({1}, {kInf})));
}

TEST(VerificationTest, PoisonIsFoundWhereItIsAndMissedWhereItIsNot) {
  std::array<float, 8> values{};
  Poison(std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(IsAllPoison(std::as_bytes(std::span(values))));
  values[7] = 0;
  EXPECT_FALSE(IsAllPoison(std::as_bytes(std::span(values))));
  EXPECT_TRUE(IsAllPoison(std::as_bytes(std::span(values)).first(28)));
  // Arithmetic carries it on.
  EXPECT_EQ(std::bit_cast<std::uint32_t>(values[0] + 1.0F), kPoisonBits);
}

}  // namespace
}  // namespace loopfleet::worker
