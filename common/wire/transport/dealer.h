#pragma once
// Dealer: the socket of a client or worker. Send never blocks and never drops silently. Used by one
// thread. With keys it speaks only CURVE.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/transport/context.h"
#include "common/wire/transport/send_result.h"

namespace loopfleet::wire {

class Dealer {
 public:
  struct Options {
    // This peer's keys, and the key that the coordinator must have. Copied.
    const PeerKeys* keys = nullptr;
    // Enables TakeHandshakeFailure() and ConsumeReconnect(). Costs two more sockets.
    bool watch_handshake = false;
  };
  // Connects in the background. Reconnects by itself, with a few attempts a second.
  static Result<Dealer> Connect(Context& context, std::string_view endpoint,
                                const Options& options);
  static Result<Dealer> Connect(Context& context, std::string_view endpoint) {
    return Connect(context, endpoint, Options{});
  }
  Dealer(Dealer&&) noexcept;
  Dealer& operator=(Dealer&&) noexcept;
  ~Dealer();

  SendResult Send(std::string_view frame);
  std::optional<std::string> Receive();

  // Why a handshake has failed since the last call; nullopt: none failed. ZeroMQ does not retry
  // after that: make a new Dealer.
  enum class HandshakeFailure : std::uint8_t {
    kKeyRefused,        // the other side speaks CURVE, too, and does not admit this key
    kProtocolMismatch,  // one side uses keys and the other does not, or its key is not the expected
                        // one
  };
  std::optional<HandshakeFailure> TakeHandshakeFailure();
  // Whether the connection was lost and restored since the last call. To the Router, later messages
  // come from an unknown peer; the Router may be that of another process.
  bool ConsumeReconnect();

  void* handle();          // ZeroMQ's, for the Poller
  void* monitor_handle();  // nullptr: handshakes are not watched

 private:
  struct Impl;
  explicit Dealer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::wire
