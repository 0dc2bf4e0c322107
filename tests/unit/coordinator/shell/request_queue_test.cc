#include "coordinator/shell/request_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace loopfleet::coordinator {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kRoomy = std::size_t{256} << 20;

Uuid Named(std::uint8_t name) {
  Uuid client;
  client.bytes[0] = name;
  return client;
}

// Adds a request whose frame is its name.
std::optional<Failure> Add(RequestQueue& queue, std::uint8_t client, std::string frame,
                           const KeyText& key = {}) {
  wire::Received request{.peer = "p", .frame = std::move(frame), .sender = {.key = key}};
  return queue.Add(Named(client), request);
}

// The frames in the order of service, if each takes `time_of` its name.
std::vector<std::string> ServeAll(RequestQueue& queue, const auto& time_of) {
  std::vector<std::string> served;
  while (!queue.empty()) {
    auto [client, request] = queue.Take();
    served.push_back(request.received.frame);
    queue.Charge(client, time_of(request.received.frame));
  }
  return served;
}

constexpr auto kLongerWithLength = [](const std::string& frame) {
  return milliseconds(frame.size());
};

TEST(RequestQueue, WhoAsksForLittleWaitsForOneRequestOfAnother) {
  RequestQueue queue(kRoomy);
  for (int i = 0; i < 1'000; ++i) ASSERT_FALSE(Add(queue, 1, "large"));
  const auto first = queue.Take();  // in service
  ASSERT_FALSE(Add(queue, 2, "s"));
  queue.Charge(first.first, milliseconds(5));
  EXPECT_EQ(queue.Take().second.received.frame, "s");
}

TEST(RequestQueue, ItIsTimeThatIsShared) {
  RequestQueue queue(kRoomy);
  for (int i = 0; i < 10; ++i) {
    ASSERT_FALSE(Add(queue, 1, "1234567890"));
    for (int j = 0; j < 10; ++j) ASSERT_FALSE(Add(queue, 2, "x"));
  }
  const auto served = ServeAll(queue, kLongerWithLength);
  ASSERT_EQ(served.size(), 110U);
  std::size_t long_time = 0;
  std::size_t short_time = 0;
  for (const std::string& frame : served) {
    (frame == "x" ? short_time : long_time) += frame.size();
    // Never further apart than the time of one request.
    EXPECT_LE(std::max(long_time, short_time) - std::min(long_time, short_time), 10U);
  }
}

TEST(RequestQueue, WhatOneClientAsksKeepsItsOrder) {
  RequestQueue queue(kRoomy);
  for (const char* frame : {"a", "bb", "c", "dddd"}) ASSERT_FALSE(Add(queue, 1, frame));
  EXPECT_EQ(ServeAll(queue, kLongerWithLength), (std::vector<std::string>{"a", "bb", "c", "dddd"}));
}

TEST(RequestQueue, ALongRequestIsServedInSlicesBetweenThoseOfOthers) {
  RequestQueue queue(kRoomy);
  ASSERT_FALSE(Add(queue, 1, "long"));
  ASSERT_FALSE(Add(queue, 1, "its next"));
  const std::size_t bytes = queue.bytes();
  std::vector<std::string> served;
  for (int slice = 0; !queue.empty(); ++slice) {
    auto [client, request] = queue.Take();
    served.push_back(request.received.frame);
    if (slice == 0) {
      ASSERT_FALSE(Add(queue, 2, "short"));
    }
    if (request.received.frame == "long" && slice < 3) queue.PutBack(client, std::move(request));
    queue.Charge(client, milliseconds(5));
  }
  EXPECT_EQ(served, (std::vector<std::string>{"long", "short", "long", "long", "its next"}));
  EXPECT_GT(bytes, 0U);
  EXPECT_EQ(queue.bytes(), 0U);
}

// Large submissions that have begun hold much memory: the next ones wait for one of them to end. A
// small request does not.
TEST(RequestQueue, FewLargeSubmissionsAreInAdmissionAtATime) {
  RequestQueue queue(kRoomy);
  const State state;
  constexpr std::uint8_t kLarge = RequestQueue::kMaxBegun + 5;
  for (std::uint8_t client = 1; client <= kLarge; ++client) {
    ASSERT_FALSE(Add(queue, client, std::string(RequestQueue::kSmallBytes + 1, 'x')));
  }
  std::set<Uuid> begun;
  for (int slice = 0; slice < 100; ++slice) {
    auto [client, request] = queue.Take();
    if (request.admission == nullptr) {
      begun.insert(client);
      request.admission = std::make_unique<Admission>(Submission{}, std::vector<JobSpec>(1), state);
    }
    queue.PutBack(client, std::move(request));
    queue.Charge(client, milliseconds(5));
  }
  EXPECT_EQ(begun.size(), RequestQueue::kMaxBegun);
  ASSERT_FALSE(Add(queue, 100, "small"));
  std::size_t before = 0;
  while (true) {
    auto [client, request] = queue.Take();
    const bool is_small = client == Named(100);
    if (!is_small) queue.PutBack(client, std::move(request));
    queue.Charge(client, milliseconds(5));
    if (is_small) break;
    ASSERT_LT(++before, 2 * RequestQueue::kMaxBegun);
  }
  // One ends, and another one begins.
  auto [ended, unused] = queue.Take();
  queue.Charge(ended, milliseconds(5));
  for (int slice = 0; slice < 100 && begun.size() == RequestQueue::kMaxBegun; ++slice) {
    auto [client, request] = queue.Take();
    if (request.admission == nullptr) begun.insert(client);
    queue.PutBack(client, std::move(request));
    queue.Charge(client, milliseconds(5));
  }
  EXPECT_EQ(begun.size(), RequestQueue::kMaxBegun + 1);
}

TEST(RequestQueue, NobodySavesUpTimeByAskingForNothing) {
  RequestQueue queue(kRoomy);
  ASSERT_FALSE(Add(queue, 2, "x"));
  ServeAll(queue, kLongerWithLength);
  for (int i = 0; i < 50; ++i) ASSERT_FALSE(Add(queue, 1, "one"));
  for (int i = 0; i < 40; ++i) {
    const auto turn = queue.Take();
    queue.Charge(turn.first, milliseconds(1));
  }
  for (int i = 0; i < 50; ++i) ASSERT_FALSE(Add(queue, 2, "two"));
  std::vector<std::string> served = ServeAll(queue, [](const auto&) { return milliseconds(1); });
  served.resize(10);
  EXPECT_EQ(std::ranges::count(served, "one"), 5);
}

TEST(RequestQueue, NorIsTimeForgottenOverAnEmptyQueue) {
  RequestQueue queue(kRoomy);
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(Add(queue, 2, "two"));
  ASSERT_FALSE(Add(queue, 1, "one"));
  const auto one = queue.Take();
  ASSERT_EQ(one.second.received.frame, "one");
  queue.Charge(one.first, milliseconds(10));
  ASSERT_FALSE(Add(queue, 1, "one"));  // it has used ten milliseconds, so the other is next
  EXPECT_EQ(ServeAll(queue, [](const auto&) { return milliseconds(4); }),
            (std::vector<std::string>{"two", "two", "two", "one"}));
}

TEST(RequestQueue, WhoHasMuchWaitingLeavesRoomToOthers) {
  constexpr std::size_t kMost = 100'000;
  RequestQueue queue(kMost);
  const std::string frame(744, 'x');  // with a request's overhead: 1,000 bytes
  std::size_t of_all = 0;
  for (std::uint8_t client = 1; client <= 5; ++client) {
    std::size_t mine = 0;
    while (!Add(queue, client, frame)) ++mine;
    EXPECT_GT(mine, client == 1 ? 15U : 5U);
    of_all += mine;
  }
  EXPECT_LT(of_all * 1'000, kMost);
  wire::Received further{.frame = frame};
  EXPECT_EQ(queue.Add(Named(1), further)->code, FailureCode::kQuotaExceeded);
  EXPECT_EQ(further.frame, frame) << "its number may still be read";
  ServeAll(queue, kLongerWithLength);
  EXPECT_FALSE(Add(queue, 1, frame));
}

TEST(RequestQueue, WhoHasNothingWaitingAlwaysHasRoom) {
  RequestQueue queue(1'000);
  const std::string frame(5'000, 'x');
  for (std::uint8_t client = 1; client <= 100; ++client) {
    EXPECT_FALSE(Add(queue, client, frame));
    EXPECT_TRUE(Add(queue, client, frame));
  }
}

TEST(RequestQueue, WhoseKeyWasRevokedIsNobody) {
  RequestQueue queue(kRoomy);
  ASSERT_FALSE(Add(queue, 1, "gone", "key 1"));
  ASSERT_FALSE(Add(queue, 2, "here", "key 2"));
  queue.Revoke({"key 1"});
  const auto gone = queue.Take();
  queue.Charge(gone.first, milliseconds(1));
  EXPECT_EQ(gone.second.received.sender.standing, wire::Sender::Standing::kRevoked);
  EXPECT_NE(queue.Take().second.received.sender.standing, wire::Sender::Standing::kRevoked);
}

TEST(RequestQueue, ClientsThatWereServedAreForgotten) {
  RequestQueue queue(kRoomy);
  for (int i = 0; i < 100'000; ++i) {
    Uuid client;
    std::memcpy(client.bytes.data(), &i, sizeof i);
    wire::Received request{.frame = "x"};
    ASSERT_FALSE(queue.Add(client, request));
    const auto turn = queue.Take();
    queue.Charge(turn.first, milliseconds(1));
  }
  EXPECT_LE(queue.client_count(), 1'024U);
}

}  // namespace
}  // namespace loopfleet::coordinator
