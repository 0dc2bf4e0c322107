#include "common/wire/transport/socket.h"

#include <fmt/format.h>
#include <zmq.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/wire/bounds.h"
#include "common/wire/transport/authenticator_impl.h"
#include "common/wire/transport/endpoint.h"
#include "common/wire/transport/listener.h"
#include "common/wire/transport/porch.h"
#include "common/wire/transport/socket_impl.h"
#include "common/wire/transport/unread_bytes.h"

namespace loopfleet::wire {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds kLinger = 500ms;  // for a last message when a socket closes
constexpr milliseconds kHandshakeLimit = 5s;
constexpr std::chrono::seconds kProbeInterval = 1s;  // of the kernel, when nothing is said
constexpr milliseconds kMaxSilence{5'000};           // of a coordinator's machine
// Workers have to be back before a coordinator that was restarted gives their work to others; a
// thousand of them are 4,000 attempts a second while it is away. ZeroMQ adds up to kFirstReconnect
// to each pause, at random.
constexpr milliseconds kFirstReconnect = 100ms;
constexpr milliseconds kLastReconnect = 200ms;
constexpr int kDealerHighWaterMark = 1000;
constexpr int kListenBacklog = 1024;      // a whole fleet that reconnects at once
constexpr int kMaxSockets = 4096;         // of one process: simulated fleets live in one
constexpr int kMaxMalformedInARow = 100;  // skipped in one call of Receive

int Count(milliseconds time) { return static_cast<int>(time.count()); }

void SetCommonOptions(zmq::socket_t& socket, int max_unsent, int max_unreceived,
                      milliseconds max_silence) {
  socket.set(zmq::sockopt::linger, Count(kLinger));
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMaxMessageBytes));
  socket.set(zmq::sockopt::handshake_ivl, Count(kHandshakeLimit));
  // No heartbeats of ZeroMQ's (heartbeat_ivl): libzmq ends the process when it is to send one, or
  // to answer one, over a connection that was reset while max_unreceived messages wait to be looked
  // at (docs/SECURITY.md). The kernel asks instead whether the other side is there, until
  // max_silence.
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, static_cast<int>(kProbeInterval.count()));
  socket.set(zmq::sockopt::tcp_keepalive_intvl, static_cast<int>(kProbeInterval.count()));
  socket.set(zmq::sockopt::tcp_maxrt, Count(max_silence));
  socket.set(zmq::sockopt::sndhwm, max_unsent);
  socket.set(zmq::sockopt::rcvhwm, max_unreceived);
}

bool IsIpv6(const Endpoint& endpoint) {
  const auto* tcp = std::get_if<TcpEndpoint>(&endpoint);
  return tcp != nullptr && tcp->host.find(':') != std::string::npos;
}

std::string ZmqName(const Endpoint& endpoint) {
  if (const auto* tcp = std::get_if<TcpEndpoint>(&endpoint)) {
    return IsIpv6(endpoint) ? fmt::format("tcp://[{}]:{}", tcp->host, tcp->port)
                            : fmt::format("tcp://{}:{}", tcp->host, tcp->port);
  }
  return "ipc://" + std::get<IpcEndpoint>(endpoint).path;
}

std::unexpected<Error> FailOf(const zmq::error_t& error, std::string_view doing,
                              std::string_view endpoint) {
  const ErrorKind kind = error.num() == EADDRINUSE ? ErrorKind::kUnavailable : ErrorKind::kSystem;
  return Fail(kind, fmt::format("cannot {} {}: {}", doing, endpoint, error.what()));
}

void CheckSize(std::string_view frame) {
  LF_CHECK(frame.size() <= kMaxMessageBytes,
           "a frame of {} bytes: messages are cut before they are sent", frame.size());
}

// False if it would block.
bool SendPart(zmq::socket_t& socket, std::string_view part, zmq::send_flags flags) {
  return socket.send(zmq::const_buffer(part.data(), part.size()), flags | zmq::send_flags::dontwait)
      .has_value();
}

zmq::const_buffer BufferOf(const std::array<std::uint8_t, kKeyBytes>& key) {
  return {key.data(), key.size()};
}

void UseKeys(zmq::socket_t& socket, const PeerKeys& keys) {
  socket.set(zmq::sockopt::curve_serverkey, BufferOf(keys.coordinator.bytes));
  socket.set(zmq::sockopt::curve_publickey, BufferOf(keys.own.public_key.bytes));
  socket.set(zmq::sockopt::curve_secretkey, BufferOf(keys.own.secret_key.bytes()));
}

}  // namespace

bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts, std::size_t kept,
                  std::size_t& count) {
  parts.clear();
  count = 0;
  for (;;) {
    zmq::message_t part;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return false;
    const bool more = part.more();
    ++count;
    if (parts.size() < kept) parts.push_back(std::move(part));
    if (!more) return true;
  }
}

// ---- Context

Context::Context() : impl_(std::make_unique<Impl>()) {
  impl_->context.set(zmq::ctxopt::max_sockets, kMaxSockets);
}
Context::~Context() = default;

// ---- Router

struct Router::Impl {
  explicit Impl(const Options& options) : unread(options.max_unread_bytes) {}

  UnreadBytes unread;
  zmq::socket_t socket;
  std::string endpoint;
  std::uint64_t malformed_count = 0;
  std::uint64_t unsent_count = 0;
  std::vector<zmq::message_t> parts;
  Authenticator* authenticator = nullptr;
  Door door = Door::kClients;
  std::unique_ptr<Porch> porch;  // of a TCP socket; goes before `socket`

  Sender SenderOf(zmq::message_t& part) const {
    if (authenticator == nullptr) return {};
    const char* user_id = ::zmq_msg_gets(part.handle(), "User-Id");
    const Principal* principal = user_id == nullptr ? nullptr : authenticator->Find(user_id, door);
    if (principal == nullptr) return {.standing = Sender::Standing::kRevoked};
    return {.standing = Sender::Standing::kAuthorized, .principal = *principal, .key = user_id};
  }
};

Router::Router(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

Result<Router> Router::Bind(Context& context, std::string_view endpoint, const Options& options) {
  const Protection protection =
      options.authenticator == nullptr ? Protection::kNone : Protection::kKeys;
  LF_TRY(const Endpoint parsed, ParseListenEndpoint(endpoint, protection));
  try {
    auto impl = std::make_unique<Impl>(options);
    impl->socket = zmq::socket_t(context.impl().context, zmq::socket_type::router);
    SetCommonOptions(impl->socket, options.max_unread_messages, options.max_unreceived_messages,
                     options.max_standstill);
    impl->socket.set(zmq::sockopt::ipv6, IsIpv6(parsed));
    impl->authenticator = options.authenticator;
    impl->door = options.door;
    if (options.authenticator != nullptr) {
      options.authenticator->impl().Guard(impl->socket, options.door);
    }
    impl->socket.set(zmq::sockopt::router_mandatory, true);
    impl->socket.set(zmq::sockopt::backlog, kListenBacklog);
    UniqueFd listener;  // ZeroMQ's own, once it is bound
    const auto* tcp = std::get_if<TcpEndpoint>(&parsed);
    if (tcp != nullptr) {
      LF_TRY(listener, ListenOn(*tcp, kListenBacklog));
      std::shared_ptr<const KnownAddresses> known;
      if (options.authenticator != nullptr) known = options.authenticator->impl().known_addresses;
      impl->porch = std::make_unique<Porch>(context.impl().context, impl->socket, listener.get(),
                                            std::move(known));
      impl->socket.set(zmq::sockopt::use_fd, listener.get());
    }
    impl->socket.bind(ZmqName(parsed));
    listener.Release();
    impl->endpoint = impl->socket.get(zmq::sockopt::last_endpoint);
    return Router(std::move(impl));
  } catch (const zmq::error_t& error) {
    return FailOf(error, "listen on", endpoint);
  }
}

const std::string& Router::endpoint() const { return impl_->endpoint; }
std::size_t Router::unread_bytes() const { return impl_->unread.of_all(); }
std::uint64_t Router::unsent_count() const { return impl_->unsent_count; }
std::uint64_t Router::malformed_count() const { return impl_->malformed_count; }

SendResult Router::Send(const PeerId& peer, std::string frame) {
  CheckSize(frame);
  try {
    if (!impl_->unread.HasRoom(peer, frame.size()) ||
        !SendPart(impl_->socket, peer, zmq::send_flags::sndmore)) {
      ++impl_->unsent_count;
      return SendResult::kWouldBlock;
    }
    // The peer's queue took the address, so it takes the frame.
    LF_CHECK(
        impl_->socket.send(impl_->unread.Take(peer, std::move(frame)), zmq::send_flags::dontwait),
        "half a message was sent");
    return SendResult::kSent;
  } catch (const zmq::error_t& error) {
    LF_CHECK(error.num() == EHOSTUNREACH, "sending: {}", error.what());
    return SendResult::kUnreachable;
  }
}

std::optional<Received> Router::Receive() {
  for (int skipped = 0; skipped < kMaxMalformedInARow; ++skipped) {
    std::size_t count = 0;
    if (!ReceiveParts(impl_->socket, impl_->parts, 2, count)) return std::nullopt;
    if (count == 2) {
      return Received{.peer = impl_->parts[0].to_string(),
                      .frame = impl_->parts[1].to_string(),
                      .sender = impl_->SenderOf(impl_->parts[1])};
    }
    ++impl_->malformed_count;
  }
  return std::nullopt;
}

// ---- Dealer

struct Dealer::Impl {
  zmq::socket_t socket;
  zmq::socket_t monitor;  // of its handshakes; perhaps none
  std::vector<zmq::message_t> parts;
  // What the monitor told and nobody took yet.
  bool was_connected = false;
  bool is_reconnected = false;
  std::optional<HandshakeFailure> failure;

  // libzmq tells of an event by a send that waits for the monitor: one that comes between the ends
  // of the two would stop the thread that moves all of this context's messages, for good.
  ~Impl() {
    if (monitor) ::zmq_socket_monitor(socket.handle(), nullptr, 0);
  }

  void WatchHandshake(zmq::context_t& context) {
    static std::atomic<std::uint64_t> last_number = 0;
    const std::string name = fmt::format("inproc://loopfleet.handshake.{}", ++last_number);
    constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    LF_CHECK(::zmq_socket_monitor(socket.handle(), name.c_str(), kEvents) == 0, "{}",
             ::zmq_strerror(::zmq_errno()));
    monitor = zmq::socket_t(context, zmq::socket_type::pair);
    monitor.set(zmq::sockopt::linger, 0);
    // For the same reason: whoever connects to a wrong place and never asks why holds up nobody.
    monitor.set(zmq::sockopt::rcvhwm, 0);
    monitor.connect(name);
  }

  void HearMonitor() {
    while (monitor) {
      // An event is two parts: its number (16 bits) and value, then the endpoint.
      std::size_t count = 0;
      if (!ReceiveParts(monitor, parts, 1, count)) return;
      std::uint16_t event = 0;
      if (parts[0].size() < sizeof event) continue;
      std::memcpy(&event, parts[0].data(), sizeof event);
      if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        is_reconnected = is_reconnected || was_connected;
        was_connected = true;
      } else {
        failure = event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ? HandshakeFailure::kKeyRefused
                                                           : HandshakeFailure::kNotSpoken;
      }
    }
  }
};

Dealer::Dealer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dealer::Dealer(Dealer&&) noexcept = default;
Dealer& Dealer::operator=(Dealer&&) noexcept = default;
Dealer::~Dealer() = default;

Result<Dealer> Dealer::Connect(Context& context, std::string_view endpoint,
                               const Options& options) {
  const Protection protection = options.keys == nullptr ? Protection::kNone : Protection::kKeys;
  LF_TRY(const Endpoint parsed, ParseConnectEndpoint(endpoint, protection));
  if (const auto* tcp = std::get_if<TcpEndpoint>(&parsed); tcp != nullptr && tcp->port == 0) {
    return Fail(ErrorKind::kInvalid, fmt::format("cannot connect to '{}': port 0", endpoint));
  }
  try {
    auto impl = std::make_unique<Impl>();
    impl->socket = zmq::socket_t(context.impl().context, zmq::socket_type::dealer);
    SetCommonOptions(impl->socket, kDealerHighWaterMark, kDealerHighWaterMark, kMaxSilence);
    impl->socket.set(zmq::sockopt::ipv6, IsIpv6(parsed));
    if (options.keys != nullptr) UseKeys(impl->socket, *options.keys);
    if (options.watch_handshake) impl->WatchHandshake(context.impl().context);
    impl->socket.set(zmq::sockopt::reconnect_ivl, Count(kFirstReconnect));
    impl->socket.set(zmq::sockopt::reconnect_ivl_max, Count(kLastReconnect));
    impl->socket.connect(ZmqName(parsed));
    return Dealer(std::move(impl));
  } catch (const zmq::error_t& error) {
    return FailOf(error, "connect to", endpoint);
  }
}

SendResult Dealer::Send(std::string_view frame) {
  CheckSize(frame);
  return SendPart(impl_->socket, frame, zmq::send_flags::none) ? SendResult::kSent
                                                               : SendResult::kWouldBlock;
}

std::optional<std::string> Dealer::Receive() {
  for (int skipped = 0; skipped < kMaxMalformedInARow; ++skipped) {
    std::size_t count = 0;
    if (!ReceiveParts(impl_->socket, impl_->parts, 1, count)) return std::nullopt;
    if (count == 1) return impl_->parts[0].to_string();
  }
  return std::nullopt;
}

std::optional<Dealer::HandshakeFailure> Dealer::TakeHandshakeFailure() {
  impl_->HearMonitor();
  return std::exchange(impl_->failure, std::nullopt);
}

bool Dealer::TakeReconnected() {
  impl_->HearMonitor();
  return std::exchange(impl_->is_reconnected, false);
}

// ---- Poller

void Poller::Add(Router& router) {
  items_.push_back({.socket = router.impl().socket.handle(), .fd = -1, .wakeup = nullptr});
}
void Poller::Add(Dealer& dealer) {
  Dealer::Impl& impl = dealer.impl();
  items_.push_back({.socket = impl.socket.handle(), .fd = -1, .wakeup = nullptr});
  if (impl.monitor) {
    items_.push_back({.socket = impl.monitor.handle(), .fd = -1, .wakeup = nullptr});
  }
}
void Poller::Add(Wakeup& wakeup) {
  items_.push_back({.socket = nullptr, .fd = wakeup.fd(), .wakeup = &wakeup});
}

void Poller::Add(Authenticator& authenticator) {
  items_.push_back({.socket = authenticator.impl().socket.handle(), .fd = -1, .wakeup = nullptr});
}
void Poller::AddReadable(int fd) {
  items_.push_back({.socket = nullptr, .fd = fd, .wakeup = nullptr});
}

void Poller::Wait(Nanos timeout) {
  std::vector<zmq_pollitem_t> items;
  items.reserve(items_.size());
  for (const Item& item : items_) items.push_back({item.socket, item.fd, ZMQ_POLLIN, 0});
  // Rounded up, so that a wait for a deadline does not end just before it.
  const auto wait = std::chrono::ceil<milliseconds>(std::clamp<Nanos>(timeout, Nanos::zero(), 1h));
  const int ready =
      ::zmq_poll(items.data(), static_cast<int>(items.size()), static_cast<long>(wait.count()));
  LF_CHECK(ready >= 0 || errno == EINTR, "polling: {}", ::zmq_strerror(errno));
  if (ready <= 0) return;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items_[i].wakeup != nullptr && items[i].revents != 0) items_[i].wakeup->Clear();
  }
}

}  // namespace loopfleet::wire
