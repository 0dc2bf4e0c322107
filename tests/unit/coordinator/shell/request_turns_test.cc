#include "coordinator/shell/request_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace loopfleet::coordinator {
namespace {

using std::chrono::milliseconds;

Uuid Named(std::uint8_t name) {
  Uuid client;
  client.bytes[0] = name;
  return client;
}

// A request whose frame is its name, so that tests can tell them apart.
std::optional<Failure> Add(RequestTurns& turns, std::uint8_t client, std::string frame,
                           const KeyText& key = {}) {
  wire::Received request{.peer = "p", .frame = std::move(frame), .sender = {.key = key}};
  return turns.Add(Named(client), request);
}

// The frames in the order in which they are served, where each takes so long.
std::vector<std::string> ServeAll(RequestTurns& turns, const auto& time_of) {
  std::vector<std::string> served;
  while (!turns.empty()) {
    auto [client, request] = turns.Take();
    served.push_back(request.frame);
    turns.Charge(client, time_of(request.frame));
  }
  return served;
}

constexpr auto kLongerWithLength = [](const std::string& frame) {
  return milliseconds(frame.size());
};

TEST(RequestTurns, WhoAsksForLittleWaitsForOneRequestOfAnother) {
  RequestTurns turns;
  for (int i = 0; i < 1'000; ++i) ASSERT_FALSE(Add(turns, 1, "large"));
  const auto first = turns.Take();  // its turn has begun
  ASSERT_FALSE(Add(turns, 2, "s"));
  turns.Charge(first.first, milliseconds(5));
  EXPECT_EQ(turns.Take().second.frame, "s");
}

TEST(RequestTurns, ItIsTimeThatIsShared) {
  RequestTurns turns;
  for (int i = 0; i < 10; ++i) {
    ASSERT_FALSE(Add(turns, 1, "1234567890"));
    for (int j = 0; j < 10; ++j) ASSERT_FALSE(Add(turns, 2, "x"));
  }
  const auto served = ServeAll(turns, kLongerWithLength);
  ASSERT_EQ(served.size(), 110U);
  std::size_t long_time = 0;
  std::size_t short_time = 0;
  for (const std::string& frame : served) {
    (frame == "x" ? short_time : long_time) += frame.size();
    // Never further apart than one request takes.
    EXPECT_LE(std::max(long_time, short_time) - std::min(long_time, short_time), 10U);
  }
}

TEST(RequestTurns, WhatOneClientAsksKeepsItsOrder) {
  RequestTurns turns;
  for (const char* frame : {"a", "bb", "c", "dddd"}) ASSERT_FALSE(Add(turns, 1, frame));
  EXPECT_EQ(ServeAll(turns, kLongerWithLength), (std::vector<std::string>{"a", "bb", "c", "dddd"}));
}

TEST(RequestTurns, NobodySavesUpTimeByAskingForNothing) {
  RequestTurns turns;
  ASSERT_FALSE(Add(turns, 2, "x"));
  ServeAll(turns, kLongerWithLength);
  for (int i = 0; i < 50; ++i) ASSERT_FALSE(Add(turns, 1, "one"));
  for (int i = 0; i < 40; ++i) {
    const auto turn = turns.Take();
    turns.Charge(turn.first, milliseconds(1));
  }
  for (int i = 0; i < 50; ++i) ASSERT_FALSE(Add(turns, 2, "two"));
  std::vector<std::string> served = ServeAll(turns, [](const auto&) { return milliseconds(1); });
  served.resize(10);
  EXPECT_EQ(std::ranges::count(served, "one"), 5);
}

TEST(RequestTurns, NorIsTimeForgottenOverAnEmptyQueue) {
  RequestTurns turns;
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(Add(turns, 2, "two"));
  ASSERT_FALSE(Add(turns, 1, "one"));
  const auto one = turns.Take();
  ASSERT_EQ(one.second.frame, "one");
  turns.Charge(one.first, milliseconds(10));
  ASSERT_FALSE(Add(turns, 1, "one"));  // it had its ten milliseconds; the other one's turn
  EXPECT_EQ(ServeAll(turns, [](const auto&) { return milliseconds(4); }),
            (std::vector<std::string>{"two", "two", "two", "one"}));
}

TEST(RequestTurns, WhoHasMuchWaitingLeavesRoomToOthers) {
  constexpr std::size_t kMost = 100'000;
  RequestTurns turns(kMost);
  const std::string frame(744, 'x');  // with what a request takes beside it: 1,000
  std::size_t of_all = 0;
  for (std::uint8_t client = 1; client <= 5; ++client) {
    std::size_t mine = 0;
    while (!Add(turns, client, frame)) ++mine;
    EXPECT_GT(mine, client == 1 ? 15U : 5U);
    of_all += mine;
  }
  EXPECT_LT(of_all * 1'000, kMost);
  wire::Received further{.frame = frame};
  EXPECT_EQ(turns.Add(Named(1), further)->code, FailureCode::kQuotaExceeded);
  EXPECT_EQ(further.frame, frame) << "its number may still be read";
  ServeAll(turns, kLongerWithLength);
  EXPECT_FALSE(Add(turns, 1, frame));
}

TEST(RequestTurns, WhoHasNothingWaitingAlwaysHasRoom) {
  RequestTurns turns(1'000);
  const std::string frame(5'000, 'x');
  for (std::uint8_t client = 1; client <= 100; ++client) {
    EXPECT_FALSE(Add(turns, client, frame));
    EXPECT_TRUE(Add(turns, client, frame));
  }
}

TEST(RequestTurns, WhoseKeyWasRevokedIsNobody) {
  RequestTurns turns;
  ASSERT_FALSE(Add(turns, 1, "gone", "key 1"));
  ASSERT_FALSE(Add(turns, 2, "here", "key 2"));
  turns.Revoke({"key 1"});
  const auto gone = turns.Take();
  turns.Charge(gone.first, milliseconds(1));
  EXPECT_EQ(gone.second.sender.standing, wire::Sender::Standing::kRevoked);
  EXPECT_NE(turns.Take().second.sender.standing, wire::Sender::Standing::kRevoked);
}

TEST(RequestTurns, ClientsThatWereServedAreForgotten) {
  RequestTurns turns;
  for (int i = 0; i < 100'000; ++i) {
    Uuid client;
    std::memcpy(client.bytes.data(), &i, sizeof i);
    wire::Received request{.frame = "x"};
    ASSERT_FALSE(turns.Add(client, request));
    const auto turn = turns.Take();
    turns.Charge(turn.first, milliseconds(1));
  }
  EXPECT_LE(turns.client_count(), 1'024U);
}

}  // namespace
}  // namespace loopfleet::coordinator
