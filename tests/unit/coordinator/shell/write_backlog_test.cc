#include "coordinator/shell/write_backlog.h"

#include <gtest/gtest.h>

#include <ranges>

namespace loopfleet::coordinator {
namespace {

Persist ToPersist(Token token, std::size_t jobs, WhenFull when_full) {
  storage::JobsAccepted accepted{.batch = BatchId{token}};
  accepted.jobs.resize(jobs);
  Persist persist{.token = token, .when_full = when_full};
  persist.writes.push_back(std::move(accepted));
  return persist;
}

std::vector<Token> BatchesOf(storage::WriteGroup group) {
  std::vector<Token> batches;
  for (const storage::Write& write : group | std::views::join) {
    batches.push_back(std::get<storage::JobsAccepted>(write).batch.value);
  }
  return batches;
}

std::vector<std::vector<Token>> TokensOf(const std::vector<Event>& events) {
  std::vector<std::vector<Token>> tokens;
  for (const Event& event : events) tokens.push_back(std::get<Persisted>(event).tokens);
  return tokens;
}
using Tokens = std::vector<std::vector<Token>>;

TEST(WriteBacklog, WhatWaitsSharesATransactionAndAnEvent) {
  WriteBacklog backlog;
  for (const Token token : {1, 2, 3}) backlog.Add(ToPersist(token, 1, WhenFull::kRefuse));
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{1, 2, 3}));
  backlog.Add(ToPersist(4, 1, WhenFull::kRefuse));  // arrives while they are written
  EXPECT_EQ(TokensOf(backlog.Applied().persisted), (Tokens{{1, 2, 3}}));
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{4}));
  EXPECT_EQ(TokensOf(backlog.Applied().persisted), (Tokens{{4}}));
  EXPECT_TRUE(backlog.empty());
}

TEST(WriteBacklog, AnEventIsBounded) {
  WriteBacklog backlog;
  constexpr std::size_t kMost = WriteBacklog::kMaxRowsPerEvent;
  const std::size_t jobs[] = {kMost / 2 - 1, kMost / 2 - 1, 0, 2 * kMost, 0};  // and a row for each
  Token token = 0;
  for (const std::size_t count : jobs) {
    backlog.Add(ToPersist(++token, count, WhenFull::kRefuse));
  }
  EXPECT_EQ(backlog.StartGroup().size(), 5u);
  EXPECT_EQ(TokensOf(backlog.Applied().persisted), (Tokens{{1, 2}, {3}, {4}, {5}}));
}

TEST(WriteBacklog, ATransactionIsBounded) {
  WriteBacklog backlog;
  for (const Token token : {1, 2, 3}) {
    backlog.Add(ToPersist(token, WriteBacklog::kMaxRowsPerCommit / 2, WhenFull::kRetry));
  }
  EXPECT_EQ(BatchesOf(backlog.StartGroup()), (std::vector<Token>{1, 2}));
  EXPECT_EQ(TokensOf(backlog.Applied().persisted), (Tokens{{1}, {2}}));
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
  EXPECT_EQ(TokensOf(backlog.Applied().persisted), (Tokens{{1, 3}}));
}

}  // namespace
}  // namespace loopfleet::coordinator
