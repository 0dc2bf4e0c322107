#include "coordinator/shell/write_backlog.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

Persist ToPersist(Token token, std::size_t jobs, WhenFull when_full) {
  storage::JobsAccepted accepted{.batch = BatchId{token}};
  accepted.jobs.resize(jobs);
  Persist persist{.token = token, .when_full = when_full};
  persist.writes.push_back(std::move(accepted));
  return persist;
}

std::vector<Token> BatchesOf(std::span<const storage::Write> group) {
  std::vector<Token> batches;
  for (const storage::Write& write : group) {
    batches.push_back(std::get<storage::JobsAccepted>(write).batch.value);
  }
  return batches;
}

TEST(WriteBacklog, WhatWaitsSharesATransaction) {
  WriteBacklog backlog;
  for (const Token token : {1, 2, 3}) backlog.Add(ToPersist(token, 1, WhenFull::kRefuse));
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{1, 2, 3}));
  backlog.Add(ToPersist(4, 1, WhenFull::kRefuse));  // arrives while they are written
  const std::vector<Event> events = backlog.Applied();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(std::get<Persisted>(events[2]).token, 3u);
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{4}));
  EXPECT_EQ(backlog.Applied().size(), 1u);
  EXPECT_TRUE(backlog.empty());
}

TEST(WriteBacklog, ATransactionIsBounded) {
  WriteBacklog backlog;
  for (const Token token : {1, 2, 3}) {
    backlog.Add(ToPersist(token, WriteBacklog::kMaxRowsPerCommit / 2, WhenFull::kRetry));
  }
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{1, 2}));
  EXPECT_EQ(backlog.Applied().size(), 2u);
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{3}));
}

TEST(WriteBacklog, WithoutRoomWhatMayBeIsRefusedAndTheRestKeepsItsWrites) {
  WriteBacklog backlog;
  backlog.Add(ToPersist(1, 1, WhenFull::kRetry));
  backlog.Add(ToPersist(2, 1, WhenFull::kRefuse));
  backlog.Add(ToPersist(3, 1, WhenFull::kRetry));
  (void)backlog.StartGroup();
  const std::vector<Event> refused =
      backlog.NoRoom({.kind = ErrorKind::kFull, .message = "no room"});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(std::get<PersistRefused>(refused[0]).token, 2u);
  EXPECT_EQ(std::get<PersistRefused>(refused[0]).failure.code, FailureCode::kStorageFull);
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{1, 3}));
  EXPECT_TRUE(backlog.NoRoom({.kind = ErrorKind::kFull, .message = "no room"}).empty());
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{1, 3}));
  EXPECT_EQ(backlog.Applied().size(), 2u);
}

}  // namespace
}  // namespace loopfleet::coordinator
