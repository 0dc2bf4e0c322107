#include "worker/verification/verification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace loopfleet::worker {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const float kPoison = std::bit_cast<float>(kPoisonBits);

// Owns the memory of an ExpectedTensor; without tolerances the comparison is exact.
class Expected {
 public:
  Expected(std::vector<double> values, std::vector<double> tolerances)
      : rounded_(values.size()), values_(std::move(values)), tolerances_(std::move(tolerances)) {
    std::ranges::transform(values_, rounded_.begin(),
                           [](double value) { return static_cast<float>(value); });
  }
  operator ExpectedTensor() const {  // NOLINT: implicit on purpose
    if (tolerances_.empty()) return {.rounded = rounded_};
    return {.rounded = rounded_, .values = values_, .tolerance = tolerances_};
  }

 private:
  std::vector<float> rounded_;
  std::vector<double> values_;
  std::vector<double> tolerances_;
};

TEST(VerificationTest, ExactMeansExact) {
  const Expected expected({1, -2, 16'777'215}, {});
  EXPECT_FALSE(Compare(std::array{1.0F, -2.0F, 16'777'215.0F}, expected));
  const float off = std::nextafter(-2.0F, 0.0F);
  const auto mismatch = Compare(std::array{1.0F, off, 16'777'215.0F}, expected);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->element, 1U);
  EXPECT_EQ(mismatch->got, off);
  EXPECT_EQ(mismatch->expected, -2);
}

TEST(VerificationTest, TheSignOfZeroDoesNotMatter) {
  EXPECT_FALSE(Compare(std::array{-0.0F, 3.0F}, Expected({0, 3}, {})));
}

TEST(VerificationTest, WhatWasNeverWrittenIsWrongWhateverIsExpected) {
  for (const double expected : {0.0, 1.0, kNan, kInf}) {
    EXPECT_TRUE(Compare(std::array{kPoison}, Expected({expected}, {}))) << expected;
    EXPECT_TRUE(Compare(std::array{kPoison}, Expected({expected}, {1e30}))) << expected;
  }
  const auto mismatch = Compare(std::array{kPoison}, Expected({12}, {}));
  ASSERT_TRUE(mismatch);
  EXPECT_NE(Describe(0, *mismatch).find("never written"), std::string::npos);
}

TEST(VerificationTest, ToleranceIsPerElementAndInclusive) {
  const Expected expected({10, 10}, {0.5, 0});
  EXPECT_FALSE(Compare(std::array{10.5F, 10.0F}, expected));
  EXPECT_EQ(Compare(std::array{10.6F, 10.0F}, expected)->element, 0U);
  EXPECT_EQ(Compare(std::array{10.5F, 10.1F}, expected)->element, 1U);
}

TEST(VerificationTest, ValuesThatFloat32CannotHoldAreRightWhenRounded) {
  EXPECT_FALSE(Compare(std::array{0.1F}, Expected({0.1}, {0})));
}

TEST(VerificationTest, NanAndInfinityByRule) {
  EXPECT_FALSE(Compare(std::array{std::nanf("")}, Expected({kNan}, {})));
  EXPECT_TRUE(Compare(std::array{1.0F}, Expected({kNan}, {})));
  EXPECT_TRUE(Compare(std::array{std::nanf("")}, Expected({1}, {100})));
  EXPECT_FALSE(Compare(std::array{static_cast<float>(kInf)}, Expected({kInf}, {})));
  EXPECT_TRUE(Compare(std::array{static_cast<float>(-kInf)}, Expected({kInf}, {})));
  EXPECT_FALSE(Compare(std::array{static_cast<float>(kInf)}, Expected({1e39}, {1e33})));
  EXPECT_TRUE(Compare(std::array{3.4e38F}, Expected({3.5e38}, {1e37}))) << "it rounds to infinity";
  EXPECT_TRUE(Compare(std::array{static_cast<float>(kInf)}, Expected({1}, {kInf})));
}

// Each way to spoil one half or a single element of outputs that are else right: NaN, the poison
// that a kernel did not overwrite, zeros, and what an earlier run on other inputs left.
TEST(VerificationTest, WhatIsWrongInAPartOfTheOutputIsFound) {
  constexpr std::size_t kCount = 4096;
  std::vector<double> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<double>(i % 7) + 1;
  std::vector<float> right(kCount);
  std::ranges::transform(values, right.begin(), [](double value) { return float(value); });
  for (const bool is_exact : {true, false}) {
    const Expected expected(values,
                            is_exact ? std::vector<double>() : std::vector<double>(kCount, 0.25));
    ASSERT_FALSE(Compare(right, expected));
    for (const float wrong :
         {std::nanf(""), -std::nanf("1"), kPoison, 0.0F, 100.0F, static_cast<float>(kInf)}) {
      const auto first_wrong = [&](std::size_t begin, std::size_t end) {
        std::vector<float> got = right;
        std::fill(got.begin() + static_cast<std::ptrdiff_t>(begin),
                  got.begin() + static_cast<std::ptrdiff_t>(end), wrong);
        const auto mismatch = Compare(got, expected);
        return mismatch ? mismatch->element : kCount;
      };
      EXPECT_EQ(first_wrong(0, kCount), 0U) << wrong;
      EXPECT_EQ(first_wrong(kCount / 2, kCount), kCount / 2) << wrong;
      EXPECT_EQ(first_wrong(0, kCount / 2), 0U) << wrong;
      EXPECT_EQ(first_wrong(kCount - 1, kCount), kCount - 1) << wrong;
    }
  }
}

TEST(VerificationTest, AnyNumberIsWrongWhereNothingIsPromised) {
  const Expected expected({1e100}, {kInf});
  EXPECT_TRUE(Compare(std::array{0.0F}, expected));
  EXPECT_TRUE(Compare(std::array{static_cast<float>(-kInf)}, expected));
  EXPECT_FALSE(Compare(std::array{static_cast<float>(kInf)}, expected));
  EXPECT_TRUE(Compare(std::array{5.0F}, Expected({1}, {kInf})));
}

TEST(VerificationTest, PoisonIsFoundWhereItIsAndMissedWhereItIsNot) {
  std::array<float, 8> values{};
  Poison(std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(IsAllPoison(std::as_bytes(std::span(values))));
  values[7] = 0;
  EXPECT_FALSE(IsAllPoison(std::as_bytes(std::span(values))));
  EXPECT_TRUE(IsAllPoison(std::as_bytes(std::span(values)).first(28)));
  // Arithmetic propagates it.
  EXPECT_EQ(std::bit_cast<std::uint32_t>(values[0] + 1.0F), kPoisonBits);
}

}  // namespace
}  // namespace loopfleet::worker
