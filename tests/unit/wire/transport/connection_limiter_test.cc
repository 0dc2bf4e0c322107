// A socket with keys during a flood of unauthenticated connections, and while a fleet returns.

#include "common/wire/transport/connection_limiter.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/wire/transport/authenticator.h"
#include "common/wire/transport/poller.h"
#include "tests/unit/wire/transport/knocking_peer.h"

namespace loopfleet::wire {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 120s;

class ConnectionLimiterTest : public ::testing::Test {
 protected:
  ConnectionLimiterTest() {
    rlimit limit{};  // this process has both ends of a thousand connections
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    AuthorizedKeys keys;
    keys.Add(node_.public_key, {.role = Role::kWorker, .name = "node7"});
    auto started = Authenticator::Start(context_, server_, keys);
    LF_CHECK(started.has_value(), "{}", started.error().message);
    authenticator_ = std::make_unique<Authenticator>(*std::move(started));
    auto router = Router::Bind(context_, "tcp://127.0.0.1:0",
                               {.authenticator = authenticator_.get(), .door = Door::kWorkers});
    LF_CHECK(router.has_value(), "{}", router.error().message);
    router_.emplace(*std::move(router));
  }

  Dealer Connect() {
    const PeerKeys keys{.self = {}, .own = node_, .coordinator = server_.public_key};
    auto dealer = Dealer::Connect(peers_, router_->endpoint(), {.keys = &keys});
    LF_CHECK(dealer.has_value(), "{}", dealer.error().message);
    return *std::move(dealer);
  }

  bool Eventually(const std::function<bool()>& condition) {
    Poller poller;
    poller.Add(*authenticator_);
    poller.Add(*router_);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      authenticator_->Serve();
      poller.Wait(1ms);
    }
    return true;
  }

  bool IsServed(Dealer& dealer) {
    if (dealer.Send("question") != SendResult::kSent) return false;
    std::optional<Received> received;
    return Eventually([&] { return (received = router_->Receive()).has_value(); }) &&
           received->sender.standing == Sender::Standing::kAuthorized;
  }

  // Silent connections from an address that never authenticates, until one is delayed.
  bool KnockUntilDelayed() {
    return Eventually([&] {
      strangers_.emplace_back("127.0.0.66", router_->endpoint());
      return !strangers_.back().IsConnected();
    });
  }

  const KeyPair server_ = KeyPair::Generate();
  const KeyPair node_ = KeyPair::Generate();
  Context context_;
  Context peers_;
  std::unique_ptr<Authenticator> authenticator_;
  std::optional<Router> router_;
  std::deque<KnockingPeer> strangers_;
};

TEST_F(ConnectionLimiterTest, AFloodDelaysNewPeersAndLeavesConnectedOnesAlone) {
  Dealer before = Connect();
  ASSERT_TRUE(IsServed(before));
  ASSERT_TRUE(KnockUntilDelayed());
  EXPECT_TRUE(IsServed(before));
  EXPECT_TRUE(Eventually([&] { return strangers_.back().IsConnected(); }))
      << "delayed, not refused";
}

// A connection that is made while the socket is being closed inherits its filter.
TEST_F(ConnectionLimiterTest, ConnectionsOfAFloodLaterCarryData) {
  ASSERT_TRUE(KnockUntilDelayed());
  strangers_.clear();
  Dealer newcomer = Connect();
  EXPECT_TRUE(IsServed(newcomer));
  EXPECT_TRUE(IsServed(newcomer));
}

// More than there are tokens, as after a restart of the coordinator.
TEST_F(ConnectionLimiterTest, AThousandWorkersComeBack) {
  constexpr int kWorkers = 1000;
  std::vector<Dealer> fleet;
  for (int i = 0; i < kWorkers; ++i) {
    fleet.push_back(Connect());
    ASSERT_EQ(fleet.back().Send("hello"), SendResult::kSent);
  }
  int served = 0;
  EXPECT_TRUE(Eventually([&] {
    while (router_->Receive()) ++served;
    return served == kWorkers;
  })) << served;
}

TEST_F(ConnectionLimiterTest, GoesBeforeOrAfterItsAuthenticator) {
  authenticator_.reset();
  KnockingPeer peer("127.0.0.66", router_->endpoint());
  router_.reset();
}

TEST_F(ConnectionLimiterTest, AnAddressInUseIsToldAsSuch) {
  const auto second = Router::Bind(context_, router_->endpoint(),
                                   {.authenticator = authenticator_.get(), .door = Door::kWorkers});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind, ErrorKind::kUnavailable);
}

}  // namespace
}  // namespace loopfleet::wire
