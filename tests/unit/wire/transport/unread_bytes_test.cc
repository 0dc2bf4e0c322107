#include "common/wire/transport/unread_bytes.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace loopfleet::wire {
namespace {

constexpr std::size_t kMessage = UnreadBytes::kMessageBytes;
constexpr std::size_t kFrame = 10'000;
constexpr std::size_t kTwentyFrames = 20 * (kFrame + kMessage);

std::string Frame() { return std::string(kFrame, 'x'); }

// Takes messages for `peer` until it has no more room.
std::vector<zmq::message_t> Fill(UnreadBytes& unread, const std::string& peer) {
  std::vector<zmq::message_t> messages;
  while (unread.HasRoom(peer, kFrame)) messages.push_back(unread.Take(peer, Frame()));
  return messages;
}

TEST(UnreadBytesTest, AMessageIsItsFrameAndCountsForAsLongAsItIsThere) {
  UnreadBytes unread(kTwentyFrames);
  {
    const zmq::message_t message = unread.Take("a", "the frame");
    EXPECT_EQ(message.to_string_view(), "the frame");
    EXPECT_EQ(unread.of_all(), 9 + kMessage);
  }
  EXPECT_EQ(unread.of_all(), 0u);
  EXPECT_EQ(unread.Take("a", "").size(), 0u);
}

TEST(UnreadBytesTest, APeerThatIsFullLeavesRoomForOthersAndHasRoomAgain) {
  UnreadBytes unread(kTwentyFrames);
  std::vector<zmq::message_t> messages = Fill(unread, "slow");
  EXPECT_EQ(messages.size(), 4u) << "a quarter of the other sixteen";
  EXPECT_FALSE(unread.HasRoom("slow", 0)) << "an empty frame is a message, too";
  EXPECT_TRUE(unread.HasRoom("other", kFrame));
  messages.pop_back();
  EXPECT_TRUE(unread.HasRoom("slow", kFrame));
}

TEST(UnreadBytesTest, HoweverManyDoNotReadTheBoundHoldsAndWhoReadsIsServed) {
  constexpr std::size_t kMany = 400;
  UnreadBytes unread(kTwentyFrames);
  std::vector<zmq::message_t> messages;
  for (std::size_t i = 0; i < kMany; ++i) {
    for (auto& message : Fill(unread, std::to_string(i))) messages.push_back(std::move(message));
  }
  EXPECT_LE(unread.of_all(), kTwentyFrames + kMany * (kFrame + kMessage));
  EXPECT_TRUE(unread.HasRoom("one who has read everything", 100 * kFrame));
  const zmq::message_t message = unread.Take("one who has read everything", Frame());
  EXPECT_FALSE(unread.HasRoom("one who has read everything", 0));
}

// ZeroMQ's threads give bytes back, perhaps after the socket is closed.
TEST(UnreadBytesTest, IsGivenBackByAnyThreadAndAfterItsEnd) {
  std::optional<UnreadBytes> unread(kTwentyFrames);
  zmq::message_t first = unread->Take("a", Frame());
  std::thread([taken = std::move(first)]() mutable { taken.rebuild(); }).join();
  EXPECT_EQ(unread->of_all(), 0u);
  const zmq::message_t last = unread->Take("a", Frame());
  unread.reset();
  EXPECT_EQ(last.to_string_view(), Frame());
}

TEST(UnreadBytesTest, WhoHasReadAllIsForgotten) {
  UnreadBytes unread(kTwentyFrames);
  const zmq::message_t kept = unread.Take("slow", Frame());
  for (int i = 0; i < 10'000; ++i) unread.Take(std::to_string(i), "x");
  EXPECT_LT(unread.peer_count(), 2'000u);
  EXPECT_EQ(unread.of_all(), kFrame + kMessage);
  EXPECT_FALSE(unread.HasRoom("slow", 4 * kFrame));
}

}  // namespace
}  // namespace loopfleet::wire
