// The filter in a real kernel, over loopback: every address of 127.0.0.0/8 is this machine's.

#include "common/wire/transport/connection_filter.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/wire/transport/listener.h"
#include "tests/unit/wire/transport/knocking_peer.h"

namespace loopfleet::wire {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;

class ConnectionFilterTest : public ::testing::Test {
 protected:
  void Listen(const std::string& host) {
    auto listener = ListenOn({.host = host, .port = 0}, 64);
    LF_CHECK(listener.has_value(), "{}", listener.error().message);
    listener_ = *std::move(listener);
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);  // also of IPv6
  }

  KnockingPeer Knock(const std::string& from, const std::string& at = "127.0.0.1") {
    return {from, "tcp://" + at + ":" + std::to_string(port_)};
  }

  void Let(Admit who, const std::vector<std::string>& known = {}) {
    std::vector<SourceAddress> addresses;
    for (const std::string& text : known) addresses.push_back(ParseSourceAddress(text).value());
    const Status done = ConnectionFilter(listener_.get()).Let(who, addresses);
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }

  static bool IsLetInAfterAll(KnockingPeer& peer) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!peer.IsConnected()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

  UniqueFd listener_;
  int port_ = 0;
};

TEST_F(ConnectionFilterTest, KeepsStrangersOutAndLetsThemInLater) {
  Listen("127.0.0.1");
  EXPECT_TRUE(Knock("127.0.0.1").IsConnected());
  Let(Admit::kKnown, {"127.0.0.7", "127.0.0.9"});
  KnockingPeer stranger = Knock("127.0.0.8");
  EXPECT_FALSE(stranger.IsConnected());
  EXPECT_TRUE(Knock("127.0.0.7").IsConnected());
  EXPECT_TRUE(Knock("127.0.0.9").IsConnected());
  EXPECT_FALSE(stranger.IsConnected());
  Let(Admit::kNobody, {"127.0.0.7"});
  EXPECT_FALSE(Knock("127.0.0.7").IsConnected());
  Let(Admit::kEverybody);
  EXPECT_TRUE(Knock("127.0.0.8").IsConnected());
  EXPECT_TRUE(IsLetInAfterAll(stranger)) << "its kernel tries again by itself";
}

// An accepted connection has the filter of its listener, which must not touch what it carries.
TEST_F(ConnectionFilterTest, ConnectionsThatWereLetInAreNotTouched) {
  Listen("127.0.0.1");
  Let(Admit::kKnown, {"127.0.0.7"});
  sockaddr_in own{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(0x7f000007)}};
  sockaddr_in other{.sin_family = AF_INET,
                    .sin_port = htons(static_cast<std::uint16_t>(port_)),
                    .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const UniqueFd peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(peer.get(), reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
  ASSERT_EQ(::connect(peer.get(), reinterpret_cast<sockaddr*>(&other), sizeof other), 0);
  Let(Admit::kNobody);
  UniqueFd accepted;
  while (!accepted) accepted = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_EQ(::send(peer.get(), "question", 8, MSG_NOSIGNAL), 8);
  char text[8] = {};
  ASSERT_EQ(::recv(accepted.get(), text, sizeof text, MSG_WAITALL), 8);
  ASSERT_EQ(::send(accepted.get(), "answer!!", 8, MSG_NOSIGNAL), 8);
  ASSERT_EQ(::recv(peer.get(), text, sizeof text, MSG_WAITALL), 8);
  EXPECT_EQ(std::string(text, sizeof text), "answer!!");
}

// [::] serves both families; IPv4 comes with headers of its own.
TEST_F(ConnectionFilterTest, BothFamilies) {
  const UniqueFd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 loopback{.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  if (!probe || ::bind(probe.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) != 0) {
    GTEST_SKIP() << "no IPv6 here";
  }
  Listen("::");
  Let(Admit::kKnown, {"127.0.0.7", "fd00::7"});
  EXPECT_TRUE(Knock("127.0.0.7").IsConnected());
  EXPECT_FALSE(Knock("127.0.0.8").IsConnected());
  EXPECT_FALSE(Knock("::1", "[::1]").IsConnected());
  Let(Admit::kKnown, {"::1"});
  EXPECT_TRUE(Knock("::1", "[::1]").IsConnected());
  EXPECT_FALSE(Knock("127.0.0.7").IsConnected());
}

// Jumps of such programs are short, and the memory for them is bounded: at worst the latest ones
// are known.
TEST_F(ConnectionFilterTest, AsManyAddressesAsAreKept) {
  Listen("127.0.0.1");
  std::vector<std::string> known;
  for (std::size_t i = 0; i < KnownAddresses::kMaxAddresses; ++i) {
    known.push_back(i % 2 == 0 ? "127.1." + std::to_string(i / 200) + "." + std::to_string(i % 200)
                               : "fd00:" + std::to_string(i) + "::1");
  }
  Let(Admit::kKnown, known);
  EXPECT_TRUE(Knock("127.1.0.0").IsConnected());
  EXPECT_FALSE(Knock("127.1.0.1").IsConnected());
}

TEST(KnownAddresses, WhatAHostIsToldBy) {
  EXPECT_EQ(ParseSourceAddress("10.1.2.3"), SourceAddress(std::uint32_t{0x0a010203}));
  EXPECT_EQ(ParseSourceAddress("::ffff:10.1.2.3"), SourceAddress(std::uint32_t{0x0a010203}));
  EXPECT_EQ(ParseSourceAddress("fd00:1:2:3:4::5"), ParseSourceAddress("fd00:1:2:3::"));
  EXPECT_NE(ParseSourceAddress("fd00:1:2:3::"), ParseSourceAddress("fd00:1:2:4::"));
  EXPECT_FALSE(ParseSourceAddress("").has_value());
  EXPECT_FALSE(ParseSourceAddress("localhost:0:0:0").has_value());
}

TEST(KnownAddresses, TheLatestAreKept) {
  KnownAddresses known;
  const auto text = [](std::size_t i) {
    return "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256);
  };
  for (std::size_t i = 0; i < KnownAddresses::kMaxAddresses; ++i) known.Add(text(i));
  const auto version = known.version();
  known.Add(text(0));
  known.Add("not an address");
  EXPECT_EQ(known.version(), version);
  known.Add("10.9.9.9");
  EXPECT_NE(known.version(), version);
  const auto now = known.Take();
  ASSERT_EQ(now.addresses.size(), KnownAddresses::kMaxAddresses);
  EXPECT_EQ(now.addresses[0], ParseSourceAddress("10.9.9.9"));
  EXPECT_EQ(now.addresses[1], ParseSourceAddress(text(0)));
  EXPECT_EQ(now.addresses.back(), ParseSourceAddress(text(2)));
}

}  // namespace
}  // namespace loopfleet::wire
