#include "common/wire/transport/dealer.h"

#include <fmt/format.h>
#include <zmq.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/wire/transport/context_impl.h"
#include "common/wire/transport/endpoint.h"
#include "common/wire/transport/message_parts.h"
#include "common/wire/transport/socket_options.h"

namespace loopfleet::wire {

namespace {

constexpr std::chrono::milliseconds kMaxSilence{5'000};  // of the coordinator's machine
// Workers must reconnect before a restarted coordinator gives their jobs to others. While it is
// down, a thousand workers make 4,000 attempts a second. ZeroMQ adds to each pause a random time of
// up to the first one.
constexpr int kFirstReconnectMs = 100;
constexpr int kLastReconnectMs = 200;
constexpr int kHighWaterMark = 1000;

zmq::const_buffer BufferOf(const std::array<std::uint8_t, kKeyBytes>& key) {
  return {key.data(), key.size()};
}

void UseKeys(zmq::socket_t& socket, const PeerKeys& keys) {
  socket.set(zmq::sockopt::curve_serverkey, BufferOf(keys.coordinator.bytes));
  socket.set(zmq::sockopt::curve_publickey, BufferOf(keys.own.public_key.bytes));
  socket.set(zmq::sockopt::curve_secretkey, BufferOf(keys.own.secret_key.bytes()));
}

}  // namespace

struct Dealer::Impl {
  zmq::socket_t socket;
  zmq::socket_t monitor;  // reports its handshakes; may be empty
  std::vector<zmq::message_t> parts;
  // Reported by the monitor, not yet taken.
  bool was_connected = false;
  bool is_reconnected = false;
  std::optional<HandshakeFailure> failure;

  // Stops the monitor before either socket closes. libzmq reports an event with a blocking send to
  // `monitor`: if that is closed first, the send blocks the context's I/O thread permanently.
  ~Impl() {
    if (monitor) ::zmq_socket_monitor(socket.handle(), nullptr, 0);
  }

  void WatchHandshake(zmq::context_t& context) {
    static std::atomic<std::uint64_t> last_number = 0;
    const std::string name = fmt::format("inproc://loopfleet.handshake.{}", ++last_number);
    constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    Monitor(socket, name, kEvents);
    monitor = zmq::socket_t(context, zmq::socket_type::pair);
    monitor.set(zmq::sockopt::linger, 0);
    // Unlimited, for the same reason: events that are never taken must not block the I/O thread.
    monitor.set(zmq::sockopt::rcvhwm, 0);
    Uninterrupted([&] { monitor.connect(name); });
  }

  void DrainMonitorEvents() {
    while (monitor) {
      // An event has two parts: its number (16 bits) and value, then the endpoint.
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
                                                           : HandshakeFailure::kProtocolMismatch;
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
    SetCommonOptions(impl->socket, parsed, kHighWaterMark, kHighWaterMark, kMaxSilence);
    if (options.keys != nullptr) UseKeys(impl->socket, *options.keys);
    if (options.watch_handshake) impl->WatchHandshake(context.impl().context);
    impl->socket.set(zmq::sockopt::reconnect_ivl, kFirstReconnectMs);
    impl->socket.set(zmq::sockopt::reconnect_ivl_max, kLastReconnectMs);
    Uninterrupted([&] { impl->socket.connect(ZmqName(parsed)); });
    return Dealer(std::move(impl));
  } catch (const zmq::error_t& error) {
    return FailOf(error, "connect to", endpoint);
  }
}

void* Dealer::handle() { return impl_->socket.handle(); }
void* Dealer::monitor_handle() { return impl_->monitor ? impl_->monitor.handle() : nullptr; }

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
  impl_->DrainMonitorEvents();
  return std::exchange(impl_->failure, std::nullopt);
}

bool Dealer::ConsumeReconnect() {
  impl_->DrainMonitorEvents();
  return std::exchange(impl_->is_reconnected, false);
}

}  // namespace loopfleet::wire
