#include "coordinator/shell/read_turns.h"

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

SendOutcomes PageFor(std::uint8_t client, std::uint64_t number, const KeyText& key = {}) {
  return {.peer = "p",
          .number = number,
          .payer = {.client = Named(client), .key = key},
          .fetch = {.batch = BatchId{1}}};
}

AnswerFromStorage ListFor(std::uint8_t client, std::uint64_t number) {
  return {.peer = "q",
          .number = number,
          .payer = {.client = Named(client)},
          .question = wire::ListOutcomes{}};
}

std::uint64_t NumberOf(const ReadTurns::Read& read) {
  return std::visit([](const auto& one) { return one.number; }, read);
}

std::vector<std::uint64_t> TakeAll(ReadTurns& turns) {
  std::vector<std::uint64_t> numbers;
  while (!turns.empty()) numbers.push_back(NumberOf(turns.Take()));
  return numbers;
}

TEST(ReadTurns, WhoAsksForOnePageWaitsForOneOfEachOther) {
  ReadTurns turns;
  for (std::uint64_t number = 1; number <= 2'000; ++number) {
    ASSERT_FALSE(turns.Add(PageFor(1, number)));
  }
  ASSERT_FALSE(turns.Add(ListFor(2, 3'000)));
  EXPECT_EQ(NumberOf(turns.Take()), 1U);
  EXPECT_EQ(NumberOf(turns.Take()), 3'000U);
  const auto others = TakeAll(turns);
  EXPECT_EQ(others.size(), 1'999U);
  EXPECT_TRUE(std::ranges::is_sorted(others));
}

TEST(ReadTurns, WhoComesAgainAndAgainGetsNoMoreThanItsShare) {
  ReadTurns turns;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_FALSE(turns.Add(PageFor(1, number)));
    ASSERT_FALSE(turns.Add(PageFor(2, 10 + number)));
  }
  EXPECT_EQ(NumberOf(turns.Take()), 1U);
  ASSERT_FALSE(turns.Add(PageFor(1, 4)));
  EXPECT_EQ(TakeAll(turns), (std::vector<std::uint64_t>{11, 2, 12, 3, 13, 4}));
}

TEST(ReadTurns, ThereIsRoomForSoManyAndNoMore) {
  ReadTurns turns({.max_reads = 3, .max_reads_per_client = 2});
  EXPECT_FALSE(turns.Add(PageFor(1, 1)));
  EXPECT_FALSE(turns.Add(PageFor(1, 2)));
  EXPECT_EQ(turns.Add(PageFor(1, 3)).value().code, FailureCode::kQuotaExceeded);
  EXPECT_FALSE(turns.Add(PageFor(2, 4)));
  EXPECT_EQ(turns.Add(PageFor(3, 5)).value().code, FailureCode::kBusy);
  turns.Take();
  EXPECT_FALSE(turns.Add(PageFor(1, 6)));
}

TEST(ReadTurns, WhoseKeyIsRevokedGetsNothingMore) {
  ReadTurns turns;
  ASSERT_FALSE(turns.Add(PageFor(1, 1, "gone")));
  ASSERT_FALSE(turns.Add(PageFor(2, 2, "good")));
  ASSERT_FALSE(turns.Add(PageFor(1, 3, "good")));
  turns.RemoveThoseWith({"gone"});
  EXPECT_EQ(TakeAll(turns), (std::vector<std::uint64_t>{3, 2}));
}

}  // namespace
}  // namespace loopfleet::coordinator
