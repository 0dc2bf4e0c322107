#include "worker/coordinator_link/code_lookups.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

namespace loopfleet::worker {
namespace {

constexpr std::chrono::seconds kLong{60};

TEST(CodeLookups, AnAnswerReachesItsQuestion) {
  CodeLookups lookups;
  CodeLookups::Question first(lookups, {1}, "aa");
  CodeLookups::Question second(lookups, {2}, "bb");
  const auto asked = lookups.TakeAsked();
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[1], (wire::CodeLookup{.lease = {2}, .code_hash = "bb"}));
  EXPECT_TRUE(lookups.TakeAsked().empty());
  lookups.Answer({.lease = {2}, .found = Evaluation{.flop_count = 7}});
  EXPECT_EQ(second.Await(kLong).value().flop_count, 7U);
  std::thread coordinator([&] { lookups.Answer({.lease = {1}}); });
  EXPECT_FALSE(first.Await(kLong)) << "none was found";
  coordinator.join();
}

TEST(CodeLookups, WithoutAnAnswerTheWaitEnds) {
  CodeLookups lookups;
  CodeLookups::Question question(lookups, {1}, "aa");
  EXPECT_FALSE(question.Await(std::chrono::milliseconds(1)));
}

TEST(CodeLookups, AQuestionThatEndedIsNotSent) {
  CodeLookups lookups;
  {
    const CodeLookups::Question gone(lookups, {1}, "aa");
  }
  const CodeLookups::Question open(lookups, {2}, "bb");
  const auto asked = lookups.TakeAsked();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].lease, LeaseId{2});
}

TEST(CodeLookups, ALateAnswerIsDropped) {
  CodeLookups lookups;
  {
    const CodeLookups::Question gone(lookups, {1}, "aa");
  }
  lookups.Answer({.lease = {1}, .found = Evaluation{.flop_count = 7}});
  CodeLookups::Question next(lookups, {1}, "aa");
  EXPECT_FALSE(next.Await(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace loopfleet::worker
