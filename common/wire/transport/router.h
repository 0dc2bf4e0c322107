#pragma once
// Router: the coordinator's socket for one kind of peer. Nothing ever blocks in Send; nothing is
// dropped silently. Belongs to one thread.
//
// With an authenticator it speaks CURVE and nothing else: what it sends is encrypted, and messages
// come only from peers whose keys are authorized. Without one it serves its own machine only.

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
    // What waits in memory for peers that do not read as fast as they are written to: messages for
    // each, and bytes for all together (unread_bytes.h: how they share it). Beyond: kWouldBlock.
    int max_unread_messages = 1000;
    std::size_t max_unread_bytes = std::size_t{256} << 20;
    // What waits in memory of each peer until Receive takes it, in messages (of kMaxMessageBytes at
    // most); the rest waits at the peer.
    int max_unreceived_messages = 64;
    // A TCP peer that takes nothing at all for this long, though there is something, is hung up on,
    // and so is one whose machine is not there.
    std::chrono::milliseconds max_standstill{60'000};
    // Lets in whom it authorizes, and nobody else. Outlives the router.
    Authenticator* authenticator = nullptr;
    Door door = Door::kClients;
  };
  static Result<Router> Bind(Context& context, std::string_view endpoint, const Options& options);
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  const std::string& endpoint() const;  // with the real port
  SendResult Send(const PeerId& peer, std::string frame);
  // How often it was kWouldBlock.
  std::uint64_t unsent_count() const;
  std::size_t unread_bytes() const;  // of all peers, with what messages cost beside their frames
  // Empty when nothing is waiting. Peers that send anything but [frame] get no further here: they
  // are counted by malformed_count() and otherwise ignored.
  std::optional<Received> Receive();
  std::uint64_t malformed_count() const;

  void* handle();  // of ZeroMQ, for the Poller

 private:
  struct Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::wire
