// A guarded socket while strangers knock without end, and while a whole fleet comes back.

#include "common/wire/transport/porch.h"

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

class PorchTest : public ::testing::Test {
 protected:
  PorchTest() {
    rlimit limit{};  // both ends of a thousand connections are here
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

  // Silent connections from an address that never authenticates, until one has to wait.
  bool KnockUntilHeldOff() {
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

TEST_F(PorchTest, StrangersWaitAndWhoIsKnownDoesNot) {
  Dealer before = Connect();
  ASSERT_TRUE(IsServed(before));
  ASSERT_TRUE(KnockUntilHeldOff());
  // More of them change nothing: who is connected is served, and who was comes back.
  EXPECT_TRUE(IsServed(before));
  Dealer again = Connect();
  EXPECT_TRUE(IsServed(again));
  // And nobody waits for ever: places come back.
  EXPECT_TRUE(Eventually([&] { return strangers_.back().IsConnected(); }));
}

TEST_F(PorchTest, AfterAFloodStrangersWithAKeyComeIn) {
  ASSERT_TRUE(KnockUntilHeldOff());
  strangers_.clear();
  Dealer newcomer = Connect();
  EXPECT_TRUE(IsServed(newcomer));
}

// More than are let in at once, and nobody is known: the coordinator has just been started.
TEST_F(PorchTest, AThousandWorkersComeBack) {
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

TEST_F(PorchTest, GoesBeforeOrAfterItsAuthenticator) {
  authenticator_.reset();
  KnockingPeer peer("127.0.0.66", router_->endpoint());
  router_.reset();
}

TEST_F(PorchTest, AnAddressInUseIsToldAsSuch) {
  const auto second = Router::Bind(context_, router_->endpoint(),
                                   {.authenticator = authenticator_.get(), .door = Door::kWorkers});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind, ErrorKind::kUnavailable);
}

}  // namespace
}  // namespace loopfleet::wire
