#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/check.h"
#include "common/wire/bounds.h"
#include "common/wire/keys/key.h"
#include "common/wire/transport/listener.h"
#include "common/wire/transport/poller.h"
#include "tests/unit/wire/keys/private_directory.h"
#include "tests/unit/wire/transport/raw_peer.h"

namespace loopfleet::wire {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;  // how long a condition may take before the test fails

bool IsSignalled(const Wakeup& wakeup) {
  pollfd item{.fd = wakeup.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&item, 1, 0) == 1;
}

Router BindRouter(Context& context, const std::string& endpoint,
                  const Router::Options& options = {}) {
  auto router = Router::Bind(context, endpoint, options);
  LF_CHECK(router.has_value(), "{}", router.error().message);
  return *std::move(router);
}

Dealer ConnectDealer(Context& context, const std::string& endpoint) {
  auto dealer = Dealer::Connect(context, endpoint);
  LF_CHECK(dealer.has_value(), "{}", dealer.error().message);
  return *std::move(dealer);
}

std::string EndpointOf(const UniqueFd& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  LF_CHECK(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0, "{}",
           std::strerror(errno));
  return "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

// Waits for the next message of a socket.
template <class Socket>
auto Next(Socket& socket) {
  Poller poller;
  poller.Add(socket);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    auto received = socket.Receive();
    if (received || std::chrono::steady_clock::now() >= end) return received;
    poller.Wait(100ms);
  }
}

bool Eventually(const std::function<bool()>& condition, std::chrono::seconds patience = kPatience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  Poller pause;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    pause.Wait(1ms);
  }
  return true;
}

void ExpectExchange(Router& router, Dealer& dealer) {
  ASSERT_EQ(dealer.Send("question"), SendResult::kSent);
  const auto received = Next(router);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->frame, "question");
  ASSERT_EQ(router.Send(received->peer, "answer"), SendResult::kSent);
  EXPECT_EQ(Next(dealer), "answer");
}

TEST(Socket, ExchangeOverTcpAnyPort) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  EXPECT_TRUE(router.endpoint().starts_with("tcp://127.0.0.1:")) << router.endpoint();
  EXPECT_FALSE(router.endpoint().ends_with(":0")) << router.endpoint();
  Dealer dealer = ConnectDealer(context, router.endpoint());
  ExpectExchange(router, dealer);
}

TEST(Socket, ExchangeOverIpc) {
  const PrivateDirectory directory;
  Context context;
  Router router = BindRouter(context, "ipc://" + directory.path() + "/clients");
  EXPECT_EQ(router.endpoint(), "ipc://" + directory.path() + "/clients");
  Dealer dealer = ConnectDealer(context, router.endpoint());
  ExpectExchange(router, dealer);
}

TEST(Socket, LocalhostIsLoopback) {
  Context context;
  Router router = BindRouter(context, "tcp://localhost:0");
  Dealer dealer = ConnectDealer(context, router.endpoint());
  ExpectExchange(router, dealer);
}

TEST(Socket, TheLargestFrameTravelsWhole) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  Dealer dealer = ConnectDealer(context, router.endpoint());
  const std::string frame(kMaxMessageBytes, 'x');
  ASSERT_EQ(dealer.Send(frame), SendResult::kSent);
  const auto received = Next(router);
  ASSERT_TRUE(received.has_value());
  EXPECT_TRUE(received->frame == frame);
}

TEST(Socket, AConnectionThatIsThereAgainIsTold) {
  const PrivateDirectory directory;
  for (const std::string& where :
       {std::string("tcp://127.0.0.1:0"), "ipc://" + directory.path() + "/door"}) {
    Context peers;
    auto context = std::make_unique<Context>();
    std::optional<Router> router = BindRouter(*context, where);
    const std::string endpoint = router->endpoint();
    auto dealer = Dealer::Connect(peers, endpoint, {.watch_handshake = true});
    ASSERT_TRUE(dealer.has_value());
    ExpectExchange(*router, *dealer);
    EXPECT_FALSE(dealer->ConsumeReconnect()) << "it is the first one";
    router.reset();
    context = std::make_unique<Context>();  // destroying the old one closes its sockets
    router = BindRouter(*context, endpoint);
    Poller poller;
    poller.Add(*dealer);
    EXPECT_TRUE(Eventually([&] {
      poller.Wait(kPatience);  // ends with a result of a handshake
      return dealer->ConsumeReconnect();
    }));
    EXPECT_FALSE(dealer->ConsumeReconnect()) << "told once";
    ExpectExchange(*router, *dealer);
  }
}

TEST(Socket, NothingWaiting) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  Dealer dealer = ConnectDealer(context, router.endpoint());
  EXPECT_FALSE(router.Receive().has_value());
  EXPECT_FALSE(dealer.Receive().has_value());
}

TEST(Socket, BadEndpointsAreErrors) {
  Context context;
  EXPECT_EQ(Router::Bind(context, "tcp://0.0.0.0:0", {}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(Dealer::Connect(context, "tcp://10.0.0.1:99").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(Dealer::Connect(context, "tcp://127.0.0.1:0").error().kind, ErrorKind::kInvalid);
  const Router router = BindRouter(context, "tcp://127.0.0.1:0");
  const auto second = Router::Bind(context, router.endpoint(), {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind, ErrorKind::kUnavailable);
  EXPECT_NE(second.error().message.find(router.endpoint()), std::string::npos);
}

TEST(Socket, APeerThatNeverWasIsUnreachable) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  EXPECT_EQ(router.Send("nobody", "frame"), SendResult::kUnreachable);
}

TEST(Socket, APeerThatIsGoneIsUnreachable) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  PeerId peer;
  {
    Dealer dealer = ConnectDealer(context, router.endpoint());
    ASSERT_EQ(dealer.Send("hello"), SendResult::kSent);
    const auto received = Next(router);
    ASSERT_TRUE(received.has_value());
    peer = received->peer;
  }
  EXPECT_TRUE(Eventually([&] { return router.Send(peer, "x") == SendResult::kUnreachable; }));
}

// Its queue fills up, Send reports that, other peers are served, and sending resumes once it reads.
TEST(Socket, APeerThatDoesNotReadWouldBlock) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0", {.max_unread_messages = 10});
  Dealer slow = ConnectDealer(context, router.endpoint());
  ASSERT_EQ(slow.Send("hello"), SendResult::kSent);
  const auto received = Next(router);
  ASSERT_TRUE(received.has_value());

  const std::string frame(64 << 10, 'x');
  int sent = 0;
  ASSERT_TRUE(Eventually([&] {
    const SendResult result = router.Send(received->peer, frame);
    if (result == SendResult::kSent) ++sent;
    return result == SendResult::kWouldBlock;
  }));
  Dealer other = ConnectDealer(context, router.endpoint());
  ExpectExchange(router, other);

  for (int i = 0; i < sent; ++i) ASSERT_TRUE(Next(slow).has_value()) << i << " of " << sent;
  EXPECT_TRUE(Eventually([&] { return router.Send(received->peer, frame) == SendResult::kSent; }));
}

// Receives the hello of `peer`, which then never reads a byte. Returns its id.
PeerId AcceptSilentPeer(Router& router, RawPeer& peer) {
  peer.ShakeHands();
  peer.WriteFrame("hello", RawPeer::More::kNone);
  const auto received = Next(router);
  LF_CHECK(received.has_value(), "no hello");
  return received->peer;
}

// Bytes in the kernel's buffers do not count.
TEST(Socket, WhatWaitsForAPeerIsBoundedInBytes) {
  constexpr std::size_t kBound = 4 << 20;
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0", {.max_unread_bytes = 4 * kBound});
  const std::string frame(kMaxMessageBytes, 'x');
  {
    RawPeer silent(router.endpoint());
    const PeerId peer = AcceptSilentPeer(router, silent);
    // The kernel takes some megabytes, with delays.
    int full_in_a_row = 0;
    ASSERT_TRUE(Eventually([&] {
      const bool is_full = router.Send(peer, frame) == SendResult::kWouldBlock;
      EXPECT_LE(router.unread_bytes(), kBound);
      full_in_a_row = is_full ? full_in_a_row + 1 : 0;
      return full_in_a_row == 100;
    }));
    EXPECT_GT(router.unread_bytes(), kBound - 2 * kMaxMessageBytes);
    EXPECT_GE(router.unsent_count(), 100u);
    const std::uint64_t unsent = router.unsent_count();
    EXPECT_EQ(router.Send(peer, "x"), SendResult::kSent) << "a short one still has room";
    EXPECT_EQ(router.unsent_count(), unsent);

    Dealer other = ConnectDealer(context, router.endpoint());
    ExpectExchange(router, other);
  }
  EXPECT_TRUE(Eventually([&] {
    router.Receive();  // a socket notices closed connections only when it is used
    return router.unread_bytes() == 0;
  })) << "gone with its peer";
}

TEST(Socket, WhatWaitsForAllPeersIsBoundedInBytes) {
  constexpr std::size_t kBound = 8 << 20;
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0", {.max_unread_bytes = kBound});
  const std::string frame(kMaxMessageBytes, 'x');
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (std::size_t i = 1; i <= 20; ++i) {
    silent.push_back(std::make_unique<RawPeer>(router.endpoint()));
    const PeerId peer = AcceptSilentPeer(router, *silent.back());
    int full_in_a_row = 0;
    ASSERT_TRUE(Eventually([&] {
      const bool is_full = router.Send(peer, frame) == SendResult::kWouldBlock;
      full_in_a_row = is_full ? full_in_a_row + 1 : 0;
      return full_in_a_row == 100;
    }));
    EXPECT_LE(router.unread_bytes(), kBound + i * kMaxMessageBytes);
  }
  Dealer other = ConnectDealer(context, router.endpoint());
  ExpectExchange(router, other);
}

TEST(Socket, APeerThatTakesNothingForLongIsHungUpOn) {
  Context context;
  Router router =
      BindRouter(context, "tcp://127.0.0.1:0", {.max_unread_bytes = 8 << 20, .stall_timeout = 1s});
  const std::string frame(kMaxMessageBytes, 'x');
  RawPeer silent(router.endpoint());
  const PeerId peer = AcceptSilentPeer(router, silent);
  EXPECT_TRUE(Eventually([&] { return router.Send(peer, frame) == SendResult::kUnreachable; }));
  EXPECT_TRUE(Eventually([&] {
    router.Receive();
    return router.unread_bytes() == 0;
  }));
}

// More messages than may wait to be received, then a reset, while this side is busy for longer than
// a ZeroMQ heartbeat would take.
TEST(Socket, AResetBehindMoreThanWaitsEndsNobody) {
  constexpr int kSent = 200;
  bool all_came = false;
  int received = 0;
  // On a busy host a short pause may end before libzmq has queued what it may.
  for (const auto pause : {300ms, 1'200ms, 5'000ms}) {
    Context context;
    Router router = BindRouter(context, "tcp://127.0.0.1:0");
    {
      RawPeer peer(router.endpoint());
      peer.ShakeHands();
      for (int i = 0; i < kSent; ++i) peer.WriteFrame("x", RawPeer::More::kNone);
      std::this_thread::sleep_for(pause);
      peer.Reset();
    }
    std::this_thread::sleep_for(1500ms);
    // At least as many arrive as libzmq had queued before it saw the reset, and another peer is
    // served in between.
    Dealer dealer = ConnectDealer(context, router.endpoint());
    ASSERT_EQ(dealer.Send("question"), SendResult::kSent);
    bool answered = false;
    received = 0;
    all_came = Eventually(
        [&] {
          while (const auto next = router.Receive()) {
            if (next->frame == "x") {
              ++received;
            } else {
              answered = router.Send(next->peer, "answer") == SendResult::kSent;
            }
          }
          return answered && received >= Router::Options{}.max_unreceived_messages;
        },
        10s);
    if (!all_came) continue;
    EXPECT_EQ(Next(dealer), "answer");
    break;
  }
  EXPECT_TRUE(all_came) << received;
}

// A ZeroMQ heartbeat queued behind those messages also aborts the process when it is answered, so
// neither side sends any.
TEST(Socket, NobodyAsksForAnAnswerOfZeroMqsOwn) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  RawPeer client(router.endpoint());
  client.ShakeHands();

  auto listener = ListenOn({.host = "127.0.0.1", .port = 0}, 1);
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  Dealer dealer = ConnectDealer(context, EndpointOf(*listener));
  RawPeer server = RawPeer::Accept(listener->get());
  server.ShakeHands("ROUTER");

  EXPECT_FALSE(client.HearsWithin(1500ms));
  EXPECT_FALSE(server.HearsWithin(0ms));
}

TEST(Socket, DealersNoticeThatACableWasPulled) {
  Context context;
  auto listener = ListenOn({.host = "127.0.0.1", .port = 0}, 2);
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  Dealer silent = ConnectDealer(context, EndpointOf(*listener));
  Dealer talks = ConnectDealer(context, EndpointOf(*listener));
  std::vector<RawPeer> servers;
  for (int i = 0; i < 2; ++i) {
    servers.push_back(RawPeer::Accept(listener->get()));
    servers.back().ShakeHands("ROUTER");
    servers.back().Vanish();
  }
  ASSERT_EQ(talks.Send("x"), SendResult::kSent);
  for (int i = 0; i < 2; ++i) RawPeer::Accept(listener->get()).ShakeHands("ROUTER");
}

TEST(Socket, ARouterNoticesThatACableWasPulled) {
  SendResult result = SendResult::kSent;
  for (const auto silence : {4s, 16s}) {  // a busy host may be late
    Context context;
    Router router = BindRouter(context, "tcp://127.0.0.1:0", {.stall_timeout = 1s});
    RawPeer silent(router.endpoint());
    const PeerId peer = AcceptSilentPeer(router, silent);
    silent.Vanish();
    std::this_thread::sleep_for(silence);  // no message is sent
    router.Receive();  // a socket notices closed connections only when it is used
    result = router.Send(peer, "x");
    if (result == SendResult::kUnreachable) break;
  }
  EXPECT_EQ(result, SendResult::kUnreachable);
}

TEST(Socket, ADealerWithoutARouterWouldBlockInTheEnd) {
  Context context;
  std::string endpoint;
  {
    Router router = BindRouter(context, "tcp://127.0.0.1:0");
    endpoint = router.endpoint();
  }
  Dealer dealer = ConnectDealer(context, endpoint);
  SendResult result = SendResult::kSent;
  for (int i = 0; i < 10'000 && result == SendResult::kSent; ++i) result = dealer.Send("x");
  EXPECT_EQ(result, SendResult::kWouldBlock);
}

TEST(Socket, ADealerReconnectsByItself) {
  const PrivateDirectory directory;
  const std::string endpoint = "ipc://" + directory.path() + "/clients";
  Context context;
  auto router = std::make_unique<Router>(BindRouter(context, endpoint));
  Dealer dealer = ConnectDealer(context, endpoint);
  ExpectExchange(*router, dealer);
  router.reset();
  ASSERT_TRUE(Eventually([&] { return Router::Bind(context, endpoint, {}).has_value(); }));
  router = std::make_unique<Router>(BindRouter(context, endpoint));
  // Messages in flight when the connection broke may be lost: send until one arrives.
  std::optional<Received> received;
  ASSERT_TRUE(Eventually([&] {
    dealer.Send("again");
    return (received = router->Receive()).has_value();
  }));
  EXPECT_EQ(received->frame, "again");
}

// libzmq's I/O thread reports a failed handshake with a blocking send: a Dealer destroyed at that
// moment must not block it.
TEST(Socket, DealersThatGoWhileTheirHandshakesFailStopNobody) {
  Context server;
  Context context;
  Router router = BindRouter(server, "tcp://127.0.0.1:0");
  const PeerKeys keys{.self = {},
                      .own = KeyPair::Generate(),
                      .coordinator = KeyPair::Generate().public_key};  // the router has no keys
  for (int i = 0; i < 300; ++i) {
    auto dealer =
        Dealer::Connect(context, router.endpoint(), {.keys = &keys, .watch_handshake = true});
    ASSERT_TRUE(dealer.has_value()) << dealer.error().message;
    // About when the answer to the greeting arrives.
    std::this_thread::sleep_for(std::chrono::microseconds(10 * (i % 100)));
  }
  Dealer other = ConnectDealer(context, router.endpoint());
  ExpectExchange(router, other);
}

TEST(Socket, GarbageLeavesTheRouterWorking) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  RawPeer http(router.endpoint());
  http.Write("GET / HTTP/1.1\r\nHost: loopfleet\r\n\r\n" + std::string(4096, 'x'));
  EXPECT_TRUE(http.IsClosedByPeer());
  RawPeer bytes(router.endpoint());
  bytes.Write(std::string("\xff\0\0\0\0\0\0\0\x01\x7f", 10) + std::string(4096, '\xee'));
  EXPECT_TRUE(bytes.IsClosedByPeer());
  RawPeer silent(router.endpoint());
  // libzmq takes some garbage for ZMTP 1.0, so it may arrive as frames: the decoder refuses those.
  while (router.Receive().has_value()) continue;

  Dealer dealer = ConnectDealer(context, router.endpoint());
  ExpectExchange(router, dealer);
}

TEST(Socket, AFrameOverTheLimitEndsTheConnection) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  RawPeer peer(router.endpoint());
  peer.ShakeHands();
  peer.WriteFrameHeader(kMaxMessageBytes + 1);
  EXPECT_TRUE(peer.IsClosedByPeer());

  Dealer dealer = ConnectDealer(context, router.endpoint());
  ExpectExchange(router, dealer);
}

// A peer that uses another peer's routing id is not heard, and receives nothing.
TEST(Socket, WhoTakesAnothersNameIsNotServed) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  Dealer dealer = ConnectDealer(context, router.endpoint());
  ASSERT_EQ(dealer.Send("who am I?"), SendResult::kSent);
  const auto received = Next(router);
  ASSERT_TRUE(received.has_value());

  RawPeer impostor(router.endpoint());
  impostor.ShakeHands("DEALER", received->peer);
  impostor.WriteFrame("it is me", RawPeer::More::kNone);
  ExpectExchange(router, dealer);
  ASSERT_EQ(router.Send(received->peer, "for the dealer"), SendResult::kSent);
  EXPECT_EQ(Next(dealer), "for the dealer");
  EXPECT_FALSE(impostor.HearsWithin(200ms));
  EXPECT_FALSE(router.Receive().has_value());
}

TEST(Socket, MessagesOfSeveralPartsAreCountedAndIgnored) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  RawPeer peer(router.endpoint());
  peer.ShakeHands();
  peer.WriteFrame("", RawPeer::More::kFollows);
  peer.WriteFrame("as a REQ socket would", RawPeer::More::kNone);
  peer.WriteFrame("whole", RawPeer::More::kNone);
  const auto received = Next(router);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->frame, "whole");
  EXPECT_EQ(router.malformed_count(), 1u);
}

TEST(Poller, ReturnsWhenTimeIsUp) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  Wakeup wakeup;
  Poller poller;
  poller.Add(router);
  poller.Add(wakeup);
  const auto start = std::chrono::steady_clock::now();
  poller.Wait(5ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
  poller.Wait(-1s);  // a deadline that has passed
}

TEST(Poller, AMessageThatWaitsEndsAWaitAtOnce) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  Dealer dealer = ConnectDealer(context, router.endpoint());
  Poller poller;
  poller.Add(router);
  ASSERT_EQ(dealer.Send("x"), SendResult::kSent);
  const auto start = std::chrono::steady_clock::now();
  poller.Wait(1h);
  poller.Wait(1h);  // nothing was read, so the socket is still readable
  EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience);
  EXPECT_TRUE(router.Receive().has_value());
}

TEST(Poller, AWakeupFromAnotherThreadEndsAWait) {
  Context context;
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  Wakeup wakeup;
  Poller poller;
  poller.Add(router);
  poller.Add(wakeup);
  const auto start = std::chrono::steady_clock::now();
  std::thread thread([&] { wakeup.Signal(); });
  poller.Wait(1h);
  thread.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience);
  EXPECT_FALSE(IsSignalled(wakeup));
}

TEST(Poller, AWakeupBeforeTheWaitIsNotLost) {
  Wakeup wakeup;
  Poller poller;
  poller.Add(wakeup);
  wakeup.Signal();
  wakeup.Signal();
  EXPECT_TRUE(IsSignalled(wakeup));
  poller.Wait(1h);
  EXPECT_FALSE(IsSignalled(wakeup));
}

// A handler without SA_RESTART, called every 50 us.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    LF_CHECK(::sigaction(SIGALRM, &action, &before_) == 0, "no handler");
    Repeat(50);
  }
  ~Interruptions() {
    Repeat(0);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  static void Repeat(long microseconds) {
    const timeval period{.tv_sec = 0, .tv_usec = microseconds};
    const itimerval timer{.it_interval = period, .it_value = period};
    LF_CHECK(::setitimer(ITIMER_REAL, &timer, nullptr) == 0, "no timer");
  }
  struct sigaction before_{};
};

TEST(Socket, ASignalInterruptsNothing) {
  const Interruptions interruptions;
  Context context;
  for (int i = 0; i < 50; ++i) {
    const Router router = BindRouter(context, "tcp://127.0.0.1:0");
    ASSERT_TRUE(Dealer::Connect(context, router.endpoint(), {.watch_handshake = true}));
  }
  Router router = BindRouter(context, "tcp://127.0.0.1:0");
  Dealer dealer = ConnectDealer(context, router.endpoint());
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(dealer.Send("ask"), SendResult::kSent);
    std::optional<Received> asked;
    while (!(asked = router.Receive())) {
    }
    ASSERT_EQ(router.Send(asked->peer, "answer"), SendResult::kSent);
    while (!dealer.Receive()) {
    }
  }
}

}  // namespace
}  // namespace loopfleet::wire
