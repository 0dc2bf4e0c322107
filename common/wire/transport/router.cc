#include "common/wire/transport/router.h"

#include <fmt/format.h>
#include <zmq.hpp>

#include <cerrno>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/wire/transport/authenticator_impl.h"
#include "common/wire/transport/connection_limiter.h"
#include "common/wire/transport/context_impl.h"
#include "common/wire/transport/endpoint.h"
#include "common/wire/transport/listener.h"
#include "common/wire/transport/message_parts.h"
#include "common/wire/transport/socket_options.h"
#include "common/wire/transport/unread_bytes.h"

namespace loopfleet::wire {

namespace {

constexpr int kListenBacklog = 1024;  // a whole fleet that reconnects at once

}  // namespace

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
  std::unique_ptr<ConnectionLimiter> limiter;  // only for TCP; destroyed before `socket`

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
    SetCommonOptions(impl->socket, parsed, options.max_unread_messages,
                     options.max_unreceived_messages, options.stall_timeout);
    impl->authenticator = options.authenticator;
    impl->door = options.door;
    if (options.authenticator != nullptr) {
      options.authenticator->impl().Guard(impl->socket, options.door);
    }
    impl->socket.set(zmq::sockopt::router_mandatory, true);
    impl->socket.set(zmq::sockopt::backlog, kListenBacklog);
    UniqueFd listener;  // owned by ZeroMQ once it is bound
    const auto* tcp = std::get_if<TcpEndpoint>(&parsed);
    if (tcp != nullptr) {
      LF_TRY(listener, ListenOn(*tcp, kListenBacklog));
      const auto rate = options.authenticator != nullptr ? ConnectionLimiter::Rate::kLimited
                                                         : ConnectionLimiter::Rate::kUnlimited;
      impl->limiter = std::make_unique<ConnectionLimiter>(context.impl().context, impl->socket,
                                                          listener.get(), rate);
      impl->socket.set(zmq::sockopt::use_fd, listener.get());
    }
    Uninterrupted([&] { impl->socket.bind(ZmqName(parsed)); });
    listener.Release();
    impl->endpoint = impl->socket.get(zmq::sockopt::last_endpoint);
    return Router(std::move(impl));
  } catch (const zmq::error_t& error) {
    return FailOf(error, "listen on", endpoint);
  }
}

void* Router::handle() { return impl_->socket.handle(); }
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
    // The peer's queue accepted the address, so it accepts the frame.
    LF_CHECK(
        SendPart(impl_->socket, impl_->unread.Take(peer, std::move(frame)), zmq::send_flags::none),
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

}  // namespace loopfleet::wire
