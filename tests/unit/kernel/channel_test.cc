#include "kernel/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <thread>

namespace loopfleet {
namespace {

Instant In(Nanos duration) { return Instant(std::chrono::steady_clock::now()) + duration; }
constexpr std::chrono::seconds kLong{30};

class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto ends = Channel::MakePair();
    ASSERT_TRUE(ends);
    near_ = std::move(ends->first);
    far_ = std::move(ends->second);
  }
  Channel near_;
  Channel far_;
};

TEST_F(ChannelTest, MessagesOfAnySizeArriveWhole) {
  for (const std::size_t size : {0U, 1U, 7U, 300'000U, 5'000'000U}) {
    const std::string sent(size, 'x');
    std::thread sender([&] { EXPECT_TRUE(near_.Send(sent, In(kLong))); });
    const Result<std::string> got = far_.Receive(In(kLong), 10'000'000);
    sender.join();
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*got, sent);
  }
}

TEST_F(ChannelTest, SilenceEndsAtTheDeadline) {
  const Result<std::string> got = far_.Receive(In(std::chrono::milliseconds(5)), 100);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, ErrorKind::kTimeout);
}

TEST_F(ChannelTest, NapsEndWithAMessageOrTheDeadlineOrTheOtherSide) {
  constexpr Nanos kNap = std::chrono::microseconds(100);
  const Instant deadline = In(std::chrono::milliseconds(5));
  far_.PollUntilReadable(kNap, deadline);
  EXPECT_GE(Instant(std::chrono::steady_clock::now()), deadline);
  EXPECT_FALSE(far_.IsReadable());
  std::thread sender([&] { EXPECT_TRUE(near_.Send("x", In(kLong))); });
  far_.PollUntilReadable(kNap, In(kLong));
  sender.join();
  EXPECT_EQ(far_.Receive(In(kLong), 100).value(), "x");
  near_ = Channel();
  far_.PollUntilReadable(kNap, In(kLong));
  EXPECT_EQ(far_.Receive(In(kLong), 100).error().kind, ErrorKind::kClosed);
}

TEST_F(ChannelTest, APartOfAMessageEndsAtTheDeadlineToo) {
  const std::uint64_t length = 100;
  ASSERT_EQ(::send(near_.fd(), &length, sizeof length, 0), 8);
  ASSERT_EQ(::send(near_.fd(), "abc", 3, 0), 3);
  const Result<std::string> got = far_.Receive(In(std::chrono::milliseconds(5)), 1000);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, ErrorKind::kTimeout);
}

TEST_F(ChannelTest, AReaderThatDoesNotReadEndsSendAtTheDeadline) {
  const Status sent = near_.Send(std::string(5'000'000, 'x'), In(std::chrono::milliseconds(5)));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, ErrorKind::kTimeout);
}

TEST_F(ChannelTest, AnEndThatGoesAwayIsClosed) {
  near_ = Channel();
  EXPECT_EQ(far_.Receive(In(kLong), 100).error().kind, ErrorKind::kClosed);
  EXPECT_EQ(far_.Send("x", In(kLong)).error().kind, ErrorKind::kClosed);
}

TEST_F(ChannelTest, TooLongIsRefusedBeforeItIsRead) {
  const std::uint64_t length = std::uint64_t{1} << 62;
  ASSERT_EQ(::send(near_.fd(), &length, sizeof length, 0), 8);
  EXPECT_EQ(far_.Receive(In(kLong), 1000).error().kind, ErrorKind::kCorrupt);
}

TEST_F(ChannelTest, DescriptorsArriveInOrderAndOnlyWhereWanted) {
  const UniqueFd first(::dup(near_.fd()));
  const UniqueFd second(::dup(far_.fd()));
  const int fds[] = {first.get(), second.get()};
  ASSERT_TRUE(near_.Send("take these", In(kLong), fds));
  Result<Channel::Message> got = far_.ReceiveWithFds(1000);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->bytes, "take these");
  ASSERT_EQ(got->fds.size(), 2U);
  struct stat sent{};
  struct stat received{};
  ASSERT_EQ(::fstat(first.get(), &sent), 0);
  ASSERT_EQ(::fstat(got->fds[0].get(), &received), 0);
  EXPECT_EQ(sent.st_ino, received.st_ino);

  ASSERT_TRUE(near_.Send("not wanted", In(kLong), fds));
  EXPECT_EQ(far_.Receive(In(kLong), 1000).value(), "not wanted");
}

// For any number of messages at once, and wherever the read-ahead ends: within a prefix, within a
// message, or behind it.
TEST_F(ChannelTest, MessagesSentAheadArriveEachWithItsOwnDescriptors) {
  const int fds[] = {near_.fd(), far_.fd(), near_.fd()};
  constexpr std::size_t kCount = 400;
  const auto size_of = [](std::size_t i) { return (i * 37) % 301; };
  const auto fds_of = [&](std::size_t i) { return std::span(fds, i % 5 == 2 ? i % 4 : 0); };
  std::thread sender([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_TRUE(near_.Send(std::string(size_of(i), static_cast<char>('a' + i % 26)), In(kLong),
                             fds_of(i)));
    }
  });
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Result<Channel::Message> got = far_.ReceiveWithFds(1000, In(kLong));
    ASSERT_TRUE(got) << i;
    EXPECT_EQ(got->bytes, std::string(size_of(i), static_cast<char>('a' + i % 26)));
    EXPECT_EQ(got->fds.size(), fds_of(i).size()) << i;
  }
  sender.join();
  EXPECT_FALSE(far_.IsReadable());
}

TEST_F(ChannelTest, WhatWasReadAheadIsReadable) {
  ASSERT_TRUE(near_.Send("first", In(kLong)));
  ASSERT_TRUE(near_.Send("second", In(kLong)));
  EXPECT_EQ(far_.Receive(In(kLong), 1000).value(), "first");
  EXPECT_TRUE(far_.IsReadable());
  const Result<Channel::Message> second = far_.ReceiveWithFds(1000);
  EXPECT_EQ(second->bytes, "second");
  EXPECT_FALSE(second->had_to_wait);
  EXPECT_FALSE(far_.IsReadable());
}

TEST_F(ChannelTest, WhatWasWaitedForSaysSo) {
  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(near_.Send("late", In(kLong)));
  });
  EXPECT_TRUE(far_.ReceiveWithFds(1000, In(kLong))->had_to_wait);
  sender.join();
}

}  // namespace
}  // namespace loopfleet
