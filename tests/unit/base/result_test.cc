#include "common/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace loopfleet {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return Fail(ErrorKind::kInvalid, "odd: " + std::to_string(value));
  return value / 2;
}

Result<int> Quarter(int value) {
  LF_TRY(const int half, Half(value));
  LF_TRY(const int quarter, Half(half));
  return quarter;
}

Status CheckQuarters(int value, int* reached) {
  LF_TRY_VOID(Quarter(value));
  ++*reached;
  return {};
}

Result<std::unique_ptr<int>> Boxed(int value) {
  LF_TRY(int half, Half(value));
  return std::make_unique<int>(half);
}

Result<int> Unboxed(int value) {
  std::unique_ptr<int> box;
  LF_TRY(box, Boxed(value));  // assigns a move-only value
  return *box;
}

TEST(Result, TryGoesOnWithTheValue) {
  EXPECT_EQ(Quarter(12), 3);
  EXPECT_EQ(Unboxed(12), 6);
}

TEST(Result, TryReturnsTheFirstError) {
  const auto first = Quarter(7);
  ASSERT_FALSE(first.has_value());
  EXPECT_EQ(first.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(first.error().message, "odd: 7");
  const auto second = Quarter(6);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().message, "odd: 3");
}

TEST(Result, TryVoidStopsAtAnError) {
  int reached = 0;
  EXPECT_TRUE(CheckQuarters(8, &reached).has_value());
  EXPECT_EQ(reached, 1);
  EXPECT_FALSE(CheckQuarters(9, &reached).has_value());
  EXPECT_EQ(reached, 1);
}

TEST(Result, TheExpressionIsEvaluatedOnce) {
  int calls = 0;
  const auto counted = [&]() -> Result<int> {
    ++calls;
    return calls;
  };
  const auto run = [&]() -> Status {
    LF_TRY(const int value, counted());
    EXPECT_EQ(value, 1);
    LF_TRY_VOID(counted());
    return {};
  };
  EXPECT_TRUE(run().has_value());
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace loopfleet
