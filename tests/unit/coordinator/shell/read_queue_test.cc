#include "coordinator/shell/read_queue.h"

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

std::uint64_t NumberOf(const ReadQueue::Read& read) {
  return std::visit([](const auto& one) { return one.number; }, read);
}

std::vector<std::uint64_t> TakeAll(ReadQueue& queue) {
  std::vector<std::uint64_t> numbers;
  while (!queue.empty()) numbers.push_back(NumberOf(queue.Take()));
  return numbers;
}

TEST(ReadQueue, WhoAsksForOnePageWaitsForOneOfEachOther) {
  ReadQueue queue;
  for (std::uint64_t number = 1; number <= 2'000; ++number) {
    ASSERT_FALSE(queue.Add(PageFor(1, number)));
  }
  ASSERT_FALSE(queue.Add(ListFor(2, 3'000)));
  EXPECT_EQ(NumberOf(queue.Take()), 1U);
  EXPECT_EQ(NumberOf(queue.Take()), 3'000U);
  const auto others = TakeAll(queue);
  EXPECT_EQ(others.size(), 1'999U);
  EXPECT_TRUE(std::ranges::is_sorted(others));
}

TEST(ReadQueue, WhoComesAgainAndAgainGetsNoMoreThanItsShare) {
  ReadQueue queue;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_FALSE(queue.Add(PageFor(1, number)));
    ASSERT_FALSE(queue.Add(PageFor(2, 10 + number)));
  }
  EXPECT_EQ(NumberOf(queue.Take()), 1U);
  ASSERT_FALSE(queue.Add(PageFor(1, 4)));
  EXPECT_EQ(TakeAll(queue), (std::vector<std::uint64_t>{11, 2, 12, 3, 13, 4}));
}

TEST(ReadQueue, ThereIsRoomForSoManyAndNoMore) {
  ReadQueue queue({.max_reads = 3, .max_reads_per_client = 2});
  EXPECT_FALSE(queue.Add(PageFor(1, 1)));
  EXPECT_FALSE(queue.Add(PageFor(1, 2)));
  EXPECT_EQ(queue.Add(PageFor(1, 3)).value().code, FailureCode::kQuotaExceeded);
  EXPECT_FALSE(queue.Add(PageFor(2, 4)));
  EXPECT_EQ(queue.Add(PageFor(3, 5)).value().code, FailureCode::kBusy);
  queue.Take();
  EXPECT_FALSE(queue.Add(PageFor(1, 6)));
}

TEST(ReadQueue, WhoseKeyIsRevokedGetsNothingMore) {
  ReadQueue queue;
  ASSERT_FALSE(queue.Add(PageFor(1, 1, "gone")));
  ASSERT_FALSE(queue.Add(PageFor(2, 2, "good")));
  ASSERT_FALSE(queue.Add(PageFor(1, 3, "good")));
  queue.RemoveByKeys({"gone"});
  EXPECT_EQ(TakeAll(queue), (std::vector<std::uint64_t>{3, 2}));
}

}  // namespace
}  // namespace loopfleet::coordinator
