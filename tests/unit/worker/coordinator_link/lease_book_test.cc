#include "worker/coordinator_link/lease_book.h"

#include <gtest/gtest.h>

#include <thread>

namespace loopfleet::worker {
namespace {

wire::Lease LeaseOf(std::uint64_t number) {
  wire::Lease lease;
  lease.lease = LeaseId{number};
  return lease;
}

TEST(LeaseBook, TakesNoMoreThanItMayAndEachOnce) {
  LeaseBook book(2);
  EXPECT_TRUE(book.Accept(LeaseOf(1), Instant{}));
  EXPECT_TRUE(book.Accept(LeaseOf(1), Instant{}));  // sent twice
  EXPECT_TRUE(book.Accept(LeaseOf(2), Instant{}));
  EXPECT_FALSE(book.Accept(LeaseOf(3), Instant{}));
  EXPECT_EQ(book.Held().size(), 2U);
  EXPECT_EQ(book.Next()->lease.lease, LeaseId{1});
  EXPECT_EQ(book.Next()->lease.lease, LeaseId{2});
}

TEST(LeaseBook, TakesMoreOfOneKindInTheirOrder) {
  LeaseBook book(8);
  for (std::uint64_t i = 1; i <= 6; ++i) ASSERT_TRUE(book.Accept(LeaseOf(i), Instant{}));
  const auto is_even = [](const wire::Lease& lease) { return lease.lease.value % 2 == 0; };
  const auto taken = book.TakeWaiting(is_even, 2);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].lease.lease, LeaseId{2});
  EXPECT_EQ(taken[1].lease.lease, LeaseId{4});
  EXPECT_EQ(book.Next()->lease.lease, LeaseId{1});
  EXPECT_EQ(book.Next()->lease.lease, LeaseId{3});
  EXPECT_EQ(book.Next()->lease.lease, LeaseId{5});
  EXPECT_EQ(book.Next()->lease.lease, LeaseId{6});
  EXPECT_TRUE(book.TakeWaiting(is_even, 2).empty());
}

TEST(LeaseBook, ADrainKeepsWhatIsBeingTimedAndWhatIsFinished) {
  LeaseBook book(8);
  for (std::uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(book.Accept(LeaseOf(i), Instant{}));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(book.Next().has_value());
  ASSERT_TRUE(book.Start(LeaseId{1}));
  ASSERT_TRUE(book.Start(LeaseId{2}));
  wire::Report report;
  report.lease = LeaseId{2};
  ASSERT_TRUE(book.Finish(report));
  EXPECT_EQ(book.DropUnstarted(), (std::vector<LeaseId>{LeaseId{3}, LeaseId{4}}));
  EXPECT_EQ(book.TakeFinished().size(), 1U);
  EXPECT_EQ(book.Held().size(), 1U);
}

TEST(LeaseBook, WhatWasDroppedIsNeitherStartedNorReported) {
  LeaseBook book(8);
  ASSERT_TRUE(book.Accept(LeaseOf(1), Instant{}));
  ASSERT_TRUE(book.Accept(LeaseOf(2), Instant{}));
  ASSERT_TRUE(book.Next().has_value());
  ASSERT_TRUE(book.Start(LeaseId{1}));
  const std::vector<LeaseId> both = {LeaseId{1}, LeaseId{2}};
  book.Drop(both);
  EXPECT_FALSE(book.Start(LeaseId{2}));
  wire::Report report;
  report.lease = LeaseId{1};
  EXPECT_FALSE(book.Finish(report));
  EXPECT_TRUE(book.TakeFinished().empty());
}

TEST(LeaseBook, OnlyWhatNothingWasDoneAboutIsGivenBack) {
  LeaseBook book(8);
  ASSERT_TRUE(book.Accept(LeaseOf(1), Instant{}));
  ASSERT_TRUE(book.Accept(LeaseOf(2), Instant{}));
  ASSERT_TRUE(book.Next().has_value());
  const std::vector<LeaseId> both = {LeaseId{1}, LeaseId{2}};
  EXPECT_EQ(book.GiveBack(both), std::vector<LeaseId>{LeaseId{2}});
}

TEST(LeaseBook, AWaitForTheNextLeaseHasALimit) {
  LeaseBook book(8);
  EXPECT_FALSE(book.AwaitNext(std::chrono::milliseconds(1)));
  ASSERT_TRUE(book.Accept(LeaseOf(1), Instant{}));
  EXPECT_TRUE(book.AwaitNext(std::chrono::hours(1)));
  EXPECT_EQ(book.Next()->lease.lease, LeaseId{1}) << "it was not taken";
  EXPECT_FALSE(book.AwaitNext(std::chrono::milliseconds(1)));
  book.Stop();
  EXPECT_TRUE(book.AwaitNext(std::chrono::hours(1)));
}

TEST(LeaseBook, StoppingEndsAWait) {
  LeaseBook book(8);
  std::thread waits([&] { EXPECT_FALSE(book.Next().has_value()); });
  book.Stop();
  waits.join();
}

}  // namespace
}  // namespace loopfleet::worker
