#pragma once
// Router: the coordinator's socket for one kind of peer. Send never blocks and never drops
// silently. Used by one thread.
//
// With an authenticator it speaks only CURVE: messages are encrypted and come only from peers with
// authorized keys. Without one it serves only its own machine.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/transport/authenticator.h"
#include "common/wire/transport/context.h"
#include "common/wire/transport/received.h"
#include "common/wire/transport/send_result.h"

namespace loopfleet::wire {

class Router {
 public:
  struct Options {
    // Limits on what waits in memory for peers that read slowly: messages for each peer, and bytes
    // for all together (shared as unread_bytes.h says). Beyond them Send returns kWouldBlock.
    int max_unread_messages = 1000;
    std::size_t max_unread_bytes = std::size_t{256} << 20;
    // Messages of each peer, of at most kMaxMessageBytes, that wait in memory until Receive takes
    // them; the rest waits at the peer.
    int max_unreceived_messages = 64;
    // A TCP peer that reads nothing for this long although data waits for it is disconnected, and
    // so is one whose machine does not answer.
    std::chrono::milliseconds stall_timeout{60'000};
    // Only peers that it authorizes are admitted; nullptr: no keys. Outlives the router.
    Authenticator* authenticator = nullptr;
    Door door = Door::kClients;
  };
  static Result<Router> Bind(Context& context, std::string_view endpoint, const Options& options);
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  const std::string& endpoint() const;  // with the actual port
  SendResult Send(const PeerId& peer, std::string frame);
  // How often Send returned kWouldBlock.
  std::uint64_t unsent_count() const;
  std::size_t unread_bytes() const;  // of all peers, with the overhead of each message
  // nullopt if no message waits. A message of several frames is counted by malformed_count() and
  // otherwise ignored.
  std::optional<Received> Receive();
  std::uint64_t malformed_count() const;

  void* handle();  // ZeroMQ's, for the Poller

 private:
  struct Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::wire
