// Which peers get a message through a guarded socket: the matrix of keys, roles and mechanisms
// against both sockets, over real sockets. A test waits until a refused peer's handshake has
// failed; then a legitimate message must be the first and only one that arrives.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <zmq.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/check.h"
#include "common/wire/transport/authenticator.h"
#include "common/wire/transport/context_impl.h"
#include "common/wire/transport/message_parts.h"
#include "common/wire/transport/poller.h"
#include "tests/unit/wire/keys/private_directory.h"
#include "tests/unit/wire/transport/raw_peer.h"

namespace loopfleet::wire {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using Standing = Sender::Standing;

constexpr auto kPatience = 60s;

// A coordinator's two sockets and a key for each role. The test's own thread serves them.
class CurveTest : public ::testing::Test {
 protected:
  CurveTest() {
    auto started = Authenticator::Start(context_, server_, Authorized());
    LF_CHECK(started.has_value(), "{}", started.error().message);
    authenticator_ = std::make_unique<Authenticator>(*std::move(started));
    clients_.emplace(Bind(Door::kClients));
    workers_.emplace(Bind(Door::kWorkers));
  }

  AuthorizedKeys Authorized() const {
    AuthorizedKeys keys;
    keys.Add(alice_.public_key, {.role = Role::kClient, .name = "alice"});
    keys.Add(node_.public_key, {.role = Role::kWorker, .name = "node7"});
    keys.Add(root_.public_key, {.role = Role::kAdmin, .name = "root"});
    return keys;
  }

  Router Bind(Door door) {
    auto router = Router::Bind(context_, "tcp://127.0.0.1:0",
                               {.authenticator = authenticator_.get(), .door = door});
    LF_CHECK(router.has_value(), "{}", router.error().message);
    return *std::move(router);
  }

  Router& At(Door door) { return door == Door::kClients ? *clients_ : *workers_; }
  Router& AtOther(Door door) { return door == Door::kClients ? *workers_ : *clients_; }

  Dealer Connect(Door door, const KeyPair& own, const PublicKey& coordinator) {
    const PeerKeys keys{.self = {}, .own = own, .coordinator = coordinator};
    auto dealer =
        Dealer::Connect(peers_, At(door).endpoint(), {.keys = &keys, .watch_handshake = true});
    LF_CHECK(dealer.has_value(), "{}", dealer.error().message);
    return *std::move(dealer);
  }
  Dealer Connect(Door door, const KeyPair& own) { return Connect(door, own, server_.public_key); }

  // Serves handshakes until the condition holds.
  bool Eventually(const std::function<bool()>& condition) {
    Poller poller;
    poller.Add(*authenticator_);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      authenticator_->Serve();
      poller.Wait(1ms);
    }
    return true;
  }

  std::optional<Received> Next(Router& router) {
    std::optional<Received> received;
    Eventually([&] { return (received = router.Receive()).has_value(); });
    return received;
  }

  // Sends a legitimate message and expects no other to arrive through either door.
  void ExpectOnlyLegitimateMessages(Door door) {
    Dealer dealer = Connect(door, door == Door::kClients ? alice_ : node_);
    ASSERT_EQ(dealer.Send("legitimate"), SendResult::kSent);
    const auto received = Next(At(door));
    ASSERT_TRUE(received.has_value());
    EXPECT_EQ(received->frame, "legitimate");
    EXPECT_EQ(received->sender.standing, Standing::kAuthorized);
    EXPECT_FALSE(At(door).Receive().has_value());
    EXPECT_FALSE(AtOther(door).Receive().has_value());
  }

  void ExpectRefused(Door door, Dealer dealer, Dealer::HandshakeFailure how) {
    ASSERT_EQ(dealer.Send("forbidden"), SendResult::kSent);  // queued until the connection is made
    std::optional<Dealer::HandshakeFailure> failure;
    ASSERT_TRUE(Eventually([&] {
      if (auto more = dealer.TakeHandshakeFailure()) failure = more;
      return failure.has_value();
    }));
    EXPECT_EQ(*failure, how);
    ExpectOnlyLegitimateMessages(door);
  }

  void ExpectServed(Door door, const KeyPair& own, const Principal& as) {
    Dealer dealer = Connect(door, own);
    ASSERT_EQ(dealer.Send("question"), SendResult::kSent);
    const auto received = Next(At(door));
    ASSERT_TRUE(received.has_value());
    EXPECT_EQ(received->sender.standing, Standing::kAuthorized);
    EXPECT_EQ(received->sender.principal, as);
    ASSERT_EQ(At(door).Send(received->peer, "answer"), SendResult::kSent);
    std::optional<std::string> answer;
    ASSERT_TRUE(Eventually([&] { return (answer = dealer.Receive()).has_value(); }));
    EXPECT_EQ(*answer, "answer");
  }

  const KeyPair server_ = KeyPair::Generate();
  const KeyPair alice_ = KeyPair::Generate();
  const KeyPair node_ = KeyPair::Generate();
  const KeyPair root_ = KeyPair::Generate();
  Context context_;
  Context peers_;
  std::unique_ptr<Authenticator> authenticator_;
  std::optional<Router> clients_;
  std::optional<Router> workers_;
};

TEST_F(CurveTest, EachRoleAtItsDoor) {
  ExpectServed(Door::kClients, alice_, {.role = Role::kClient, .name = "alice"});
  ExpectServed(Door::kClients, root_, {.role = Role::kAdmin, .name = "root"});
  ExpectServed(Door::kWorkers, node_, {.role = Role::kWorker, .name = "node7"});
}

TEST_F(CurveTest, NoRoleAtAnothersDoor) {
  using enum Dealer::HandshakeFailure;
  ExpectRefused(Door::kClients, Connect(Door::kClients, node_), kKeyRefused);
  ExpectRefused(Door::kWorkers, Connect(Door::kWorkers, alice_), kKeyRefused);
  ExpectRefused(Door::kWorkers, Connect(Door::kWorkers, root_), kKeyRefused);
  const auto refusals = authenticator_->TakeRefusals();
  EXPECT_GE(refusals.count, 3u);
  EXPECT_NE(refusals.last.find("of admin root is not for this socket"), std::string::npos)
      << refusals.last;
  EXPECT_EQ(authenticator_->TakeRefusals().count, 0u);
}

TEST_F(CurveTest, UnknownKeys) {
  for (const Door door : {Door::kClients, Door::kWorkers}) {
    ExpectRefused(door, Connect(door, KeyPair::Generate()), Dealer::HandshakeFailure::kKeyRefused);
  }
}

// No door admits the coordinator's own key.
TEST_F(CurveTest, TheCoordinatorsKeyIsNobodys) {
  for (const Door door : {Door::kClients, Door::kWorkers}) {
    ExpectRefused(door, Connect(door, server_), Dealer::HandshakeFailure::kKeyRefused);
  }
}

TEST_F(CurveTest, APeerThatExpectsAnotherCoordinator) {
  for (const Door door : {Door::kClients, Door::kWorkers}) {
    const KeyPair& own = door == Door::kClients ? alice_ : node_;
    ExpectRefused(door, Connect(door, own, KeyPair::Generate().public_key),
                  Dealer::HandshakeFailure::kProtocolMismatch);
  }
}

TEST_F(CurveTest, AConnectionThatIsThereAgainIsTold) {
  Dealer dealer = Connect(Door::kWorkers, node_);
  ASSERT_EQ(dealer.Send("before"), SendResult::kSent);
  ASSERT_TRUE(Next(*workers_).has_value());
  EXPECT_FALSE(dealer.ConsumeReconnect());
  const std::string endpoint = workers_->endpoint();
  workers_.reset();
  ASSERT_TRUE(Eventually([&] {  // the port is freed in the background
    auto again = Router::Bind(context_, endpoint,
                              {.authenticator = authenticator_.get(), .door = Door::kWorkers});
    if (again) workers_.emplace(*std::move(again));
    return again.has_value();
  }));
  EXPECT_TRUE(Eventually([&] { return dealer.ConsumeReconnect(); }));
  ASSERT_EQ(dealer.Send("after"), SendResult::kSent);
  const auto after = Next(*workers_);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->sender.standing, Standing::kAuthorized);
  EXPECT_FALSE(dealer.TakeHandshakeFailure().has_value());
}

TEST_F(CurveTest, APeerWithoutKeys) {
  for (const Door door : {Door::kClients, Door::kWorkers}) {
    auto dealer = Dealer::Connect(peers_, At(door).endpoint(), {.watch_handshake = true});
    ASSERT_TRUE(dealer.has_value());
    ExpectRefused(door, *std::move(dealer), Dealer::HandshakeFailure::kProtocolMismatch);
  }
}

// In the other direction: a peer with keys sends nothing to a coordinator that lacks the right key.
TEST_F(CurveTest, APeerWithKeysAndASocketWithout) {
  auto router = Router::Bind(context_, "tcp://127.0.0.1:0", {});
  ASSERT_TRUE(router.has_value());
  const PeerKeys keys{.self = {}, .own = alice_, .coordinator = server_.public_key};
  auto dealer =
      Dealer::Connect(peers_, router->endpoint(), {.keys = &keys, .watch_handshake = true});
  ASSERT_TRUE(dealer.has_value());
  ASSERT_EQ(dealer->Send("secret"), SendResult::kSent);
  ASSERT_TRUE(Eventually([&] {
    return dealer->TakeHandshakeFailure() == Dealer::HandshakeFailure::kProtocolMismatch;
  }));
  auto plain = Dealer::Connect(peers_, router->endpoint());
  ASSERT_TRUE(plain.has_value());
  ASSERT_EQ(plain->Send("in the open"), SendResult::kSent);
  const auto received = Next(*router);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->frame, "in the open");
  EXPECT_EQ(received->sender.standing, Standing::kWithoutKey);
  EXPECT_FALSE(router->Receive().has_value());
}

TEST_F(CurveTest, TheMechanismPlain) {
  zmq::context_t context;
  for (const Door door : {Door::kClients, Door::kWorkers}) {
    zmq::socket_t plain(context, zmq::socket_type::dealer);
    plain.set(zmq::sockopt::linger, 0);
    plain.set(zmq::sockopt::plain_username, "alice");
    plain.set(zmq::sockopt::plain_password, "secret");
    ASSERT_EQ(::zmq_socket_monitor(
                  plain.handle(), "inproc://plain",
                  ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL),
              0);
    zmq::socket_t monitor(context, zmq::socket_type::pair);
    monitor.connect("inproc://plain");
    plain.connect(At(door).endpoint());
    plain.send(zmq::str_buffer("forbidden"), zmq::send_flags::dontwait);
    zmq::message_t event;
    ASSERT_TRUE(
        Eventually([&] { return monitor.recv(event, zmq::recv_flags::dontwait).has_value(); }));
    ::zmq_socket_monitor(plain.handle(), nullptr, 0);
    ExpectOnlyLegitimateMessages(door);
  }
}

// ZMTP by hand: greetings of every mechanism, followed by a peer's next frames, and garbage.
TEST_F(CurveTest, BytesByHand) {
  constexpr std::size_t kGreetingBytes = 64;
  const std::string signature = "\xff\0\0\0\0\0\0\0\x01\x7f\x03\0"s;
  const std::string ready =
      "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x06"
      "DEALER"s;
  const std::string frame =
      "\0\x09"
      "forbidden"s;
  for (const Door door : {Door::kClients, Door::kWorkers}) {
    for (const std::string& mechanism : {"NULL"s, "PLAIN"s, "CURVE"s, "GSSAPI"s, ""s}) {
      RawPeer peer(At(door).endpoint());
      std::string greeting = signature + mechanism;
      greeting.resize(kGreetingBytes, '\0');
      peer.Write(greeting + ready + frame);
      EXPECT_TRUE(peer.IsClosedByPeer()) << mechanism;
    }
    RawPeer http(At(door).endpoint());
    http.Write("GET / HTTP/1.1\r\nHost: loopfleet\r\n\r\n" + std::string(4096, 'x'));
    EXPECT_TRUE(http.IsClosedByPeer());
    ExpectOnlyLegitimateMessages(door);
  }
}

TEST_F(CurveTest, ARevokedKeyCountsFromTheNextMessageOn) {
  Dealer dealer = Connect(Door::kClients, alice_);
  ASSERT_EQ(dealer.Send("before"), SendResult::kSent);
  const auto before = Next(*clients_);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->sender.standing, Standing::kAuthorized);

  authenticator_->Replace({});
  ASSERT_EQ(dealer.Send("after"), SendResult::kSent);
  const auto after = Next(*clients_);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->peer, before->peer) << "the connection is the same";
  EXPECT_EQ(after->sender.standing, Standing::kRevoked);

  // A new connection is refused; once the key is back, it is admitted.
  Dealer again = Connect(Door::kClients, alice_);
  ASSERT_EQ(again.Send("again"), SendResult::kSent);
  ASSERT_TRUE(Eventually(
      [&] { return again.TakeHandshakeFailure() == Dealer::HandshakeFailure::kKeyRefused; }));
  EXPECT_FALSE(clients_->Receive().has_value());
  authenticator_->Replace(Authorized());
  Dealer anew = Connect(Door::kClients, alice_);
  ASSERT_EQ(anew.Send("anew"), SendResult::kSent);
  const auto back = Next(*clients_);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->frame, "anew");
  EXPECT_EQ(back->sender.standing, Standing::kAuthorized);
}

// A key that is moved to another role loses access to its present door at once.
TEST_F(CurveTest, ARoleThatChanges) {
  Dealer dealer = Connect(Door::kClients, alice_);
  ASSERT_EQ(dealer.Send("client"), SendResult::kSent);
  ASSERT_TRUE(Next(*clients_).has_value());
  AuthorizedKeys keys;
  keys.Add(alice_.public_key, {.role = Role::kWorker, .name = "alice"});
  authenticator_->Replace(keys);
  ASSERT_EQ(dealer.Send("worker?"), SendResult::kSent);
  auto received = Next(*clients_);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->sender.standing, Standing::kRevoked);
  keys = {};
  keys.Add(alice_.public_key, {.role = Role::kAdmin, .name = "alice"});
  authenticator_->Replace(keys);
  ASSERT_EQ(dealer.Send("admin"), SendResult::kSent);
  received = Next(*clients_);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->sender.principal.role, Role::kAdmin);
}

// A socket of the same context that names another domain admits no peer.
TEST_F(CurveTest, AnotherDomain) {
  zmq::socket_t stray(context_.impl().context, zmq::socket_type::router);
  stray.set(zmq::sockopt::linger, 0);
  stray.set(zmq::sockopt::curve_server, true);
  stray.set(zmq::sockopt::curve_secretkey, server_.secret_key.ToText());
  stray.set(zmq::sockopt::zap_domain, "elsewhere");
  stray.bind("tcp://127.0.0.1:*");
  const PeerKeys keys{.self = {}, .own = alice_, .coordinator = server_.public_key};
  auto dealer = Dealer::Connect(peers_, stray.get(zmq::sockopt::last_endpoint),
                                {.keys = &keys, .watch_handshake = true});
  ASSERT_TRUE(dealer.has_value());
  ASSERT_EQ(dealer->Send("forbidden"), SendResult::kSent);
  ASSERT_TRUE(Eventually(
      [&] { return dealer->TakeHandshakeFailure() == Dealer::HandshakeFailure::kKeyRefused; }));
  zmq::message_t message;
  EXPECT_FALSE(stray.recv(message, zmq::recv_flags::dontwait).has_value());
}

// libzmq by default admits every key when no handler is present; the enforced domain prevents that.
TEST_F(CurveTest, WithoutAnAuthenticatorNobodyComesIn) {
  authenticator_.reset();
  const PeerKeys keys{.self = {}, .own = alice_, .coordinator = server_.public_key};
  auto dealer =
      Dealer::Connect(peers_, clients_->endpoint(), {.keys = &keys, .watch_handshake = true});
  ASSERT_TRUE(dealer.has_value());
  ASSERT_EQ(dealer->Send("forbidden"), SendResult::kSent);
  Poller pause;
  bool refused = false;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!refused && std::chrono::steady_clock::now() < end) {
    refused = dealer->TakeHandshakeFailure().has_value();
    pause.Wait(1ms);
  }
  EXPECT_TRUE(refused);
  EXPECT_FALSE(clients_->Receive().has_value());
}

TEST_F(CurveTest, OneAuthenticatorForAContext) {
  const auto second = Authenticator::Start(context_, server_, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind, ErrorKind::kSystem);
}

TEST_F(CurveTest, OverIpcAndIpv6) {
  const PrivateDirectory directory;
  const Router::Options options{.authenticator = authenticator_.get(), .door = Door::kClients};
  std::vector<std::string> endpoints = {"ipc://" + directory.path() + "/clients"};
  if (const UniqueFd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)); probe) {
    sockaddr_in6 loopback{.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (::bind(probe.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0) {
      endpoints.emplace_back("tcp://[::1]:0");
    }
  }
  for (const std::string& endpoint : endpoints) {
    auto router = Router::Bind(context_, endpoint, options);
    ASSERT_TRUE(router.has_value()) << router.error().message;
    const PeerKeys keys{.self = {}, .own = alice_, .coordinator = server_.public_key};
    auto dealer = Dealer::Connect(peers_, router->endpoint(), {.keys = &keys});
    ASSERT_TRUE(dealer.has_value()) << dealer.error().message;
    ASSERT_EQ(dealer->Send("hello"), SendResult::kSent);
    const auto received = Next(*router);
    ASSERT_TRUE(received.has_value()) << endpoint;
    EXPECT_EQ(received->sender.principal.name, "alice");
  }
}

TEST(Door, AdmitsItsRolesOnly) {
  EXPECT_TRUE(Admits(Door::kClients, Role::kClient));
  EXPECT_TRUE(Admits(Door::kClients, Role::kAdmin));
  EXPECT_FALSE(Admits(Door::kClients, Role::kWorker));
  EXPECT_FALSE(Admits(Door::kClients, Role::kCoordinator));
  EXPECT_TRUE(Admits(Door::kWorkers, Role::kWorker));
  EXPECT_FALSE(Admits(Door::kWorkers, Role::kClient));
  EXPECT_FALSE(Admits(Door::kWorkers, Role::kAdmin));
  EXPECT_FALSE(Admits(Door::kWorkers, Role::kCoordinator));
}

}  // namespace
}  // namespace loopfleet::wire
