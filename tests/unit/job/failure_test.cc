#include "common/job/failure.h"

#include <gtest/gtest.h>

#include <set>

namespace loopfleet {
namespace {

TEST(Failure, EveryCodeHasOneNameAndAnAdvice) {
  std::set<std::string_view> names;
  for (const FailureInfo& info : FailureTable()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.advice.empty()) << info.name;
    EXPECT_EQ(ParseFailureCode(info.name), info.code);
    EXPECT_EQ(FailureCodeOf(static_cast<std::uint16_t>(info.code)), info.code);
    EXPECT_EQ(InfoOf(info.code).name, info.name);
  }
  EXPECT_EQ(names.size(), 35u);
}

// The numbers are in databases and on the wire.
TEST(Failure, NumbersNeverChange) {
  EXPECT_EQ(static_cast<int>(FailureCode::kInvalidBenchmark), 1);
  EXPECT_EQ(static_cast<int>(FailureCode::kUnsupported), 14);
  EXPECT_EQ(static_cast<int>(FailureCode::kRunCrash), 21);
  EXPECT_EQ(static_cast<int>(FailureCode::kWrongOutput), 24);
  EXPECT_EQ(static_cast<int>(FailureCode::kShuttingDown), 34);
  EXPECT_EQ(static_cast<int>(FailureCode::kNotFound), 35);
}

TEST(Failure, UnknownNumbersAndNamesAreNone) {
  EXPECT_FALSE(FailureCodeOf(0));
  EXPECT_FALSE(FailureCodeOf(36));
  EXPECT_FALSE(ParseFailureCode("NO_SUCH_CODE"));
}

TEST(Failure, RejectionKeepsItsMessageAndIndex) {
  const Failure failure = ToFailure(
      {.code = looptree::RejectionCode::kInvalidAction, .message = "no", .action_index = 3});
  EXPECT_EQ(failure.code, FailureCode::kInvalidAction);
  EXPECT_EQ(failure.message, "no");
  EXPECT_EQ(failure.action_index, 3u);
}

TEST(Failure, TheAdviceOfMalformedFitsAMessageAndAJob) {
  const std::string advice(InfoOf(FailureCode::kMalformed).advice);
  for (const char* word : {"message", "job", "error"}) {
    EXPECT_NE(advice.find(word), std::string::npos) << advice;
  }
}

}  // namespace
}  // namespace loopfleet
