#include "common/wire/transport/connection_tokens.h"

#include <gtest/gtest.h>

namespace loopfleet::wire {
namespace {

using namespace std::chrono_literals;

constexpr ConnectionTokens::Limits kLimits{.at_once = 10, .per_second = 2};

class ConnectionTokensTest : public ::testing::Test {
 protected:
  void Accept(int count) {
    for (int i = 0; i < count; ++i) tokens_.Accepted(now_);
  }
  void Authorize(int count) {
    for (int i = 0; i < count; ++i) tokens_.Authorized(now_);
  }
  bool IsAvailableAfter(Nanos time) {
    now_ += time;
    return tokens_.IsAvailable(now_);
  }

  Instant now_{};
  ConnectionTokens tokens_{kLimits, now_};
};

TEST_F(ConnectionTokensTest, EachConnectionTakesOneAndTheyComeBack) {
  Accept(9);
  EXPECT_TRUE(IsAvailableAfter(0s));
  Accept(1);
  EXPECT_FALSE(IsAvailableAfter(0s));
  EXPECT_FALSE(IsAvailableAfter(400ms));
  EXPECT_TRUE(IsAvailableAfter(200ms)) << "two tokens come back in a second";
}

TEST_F(ConnectionTokensTest, AReturningFleetPasses) {
  for (int wave = 0; wave < 100; ++wave) {
    Accept(9);
    EXPECT_TRUE(IsAvailableAfter(0s)) << wave;
    Authorize(9);
  }
  EXPECT_TRUE(tokens_.IsFull(now_));
}

TEST_F(ConnectionTokensTest, AuthorizedConnectionsAddNoTokens) {
  Authorize(100);
  Accept(10);
  EXPECT_FALSE(IsAvailableAfter(0s));
}

// However many connections were accepted between two polls, the socket opens within seconds.
TEST_F(ConnectionTokensTest, TheDebtIsBounded) {
  Accept(100'000);
  EXPECT_FALSE(IsAvailableAfter(5s));
  EXPECT_TRUE(IsAvailableAfter(500ms));
}

// A minute of a flood that takes every token.
TEST_F(ConnectionTokensTest, AFloodGetsOnlyTheTokensThatComeBack) {
  int admitted = 0;
  for (int poll = 0; poll < 6000; ++poll) {
    if (!IsAvailableAfter(10ms)) continue;
    Accept(3);
    admitted += 3;
  }
  EXPECT_LE(admitted, 10 + 2 * 60 + 3);
  EXPECT_GE(admitted, 2 * 60);
}

TEST_F(ConnectionTokensTest, IsFullOnceEveryTokenIsBack) {
  EXPECT_TRUE(tokens_.IsFull(now_));
  Accept(1);
  EXPECT_FALSE(tokens_.IsFull(now_));
  EXPECT_TRUE(tokens_.IsFull(now_ + 500ms));
}

}  // namespace
}  // namespace loopfleet::wire
