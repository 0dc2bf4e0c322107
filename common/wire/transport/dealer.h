#pragma once
// Dealer: the socket of a client or worker. Nothing ever blocks in Send; nothing is dropped
// silently. Belongs to one thread. With keys it speaks CURVE and nothing else.

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
    // The own key, and the one that the other side must have. Copied.
    const PeerKeys* keys = nullptr;
    // Whether TakeHandshakeFailure() and TakeReconnected() are to know anything. It costs two
    // further sockets.
    bool watch_handshake = false;
  };
  // Connects in the background and reconnects by itself, a few times a second.
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

  // Why the other side and this one did not come together, if that has happened since the last
  // call. ZeroMQ does not try again by itself then: connect anew.
  enum class HandshakeFailure : std::uint8_t {
    kKeyRefused,  // the other side knows what is spoken here, and does not let this key in
    kNotSpoken,   // one side uses keys and the other does not, or it has another key than expected
  };
  std::optional<HandshakeFailure> TakeHandshakeFailure();
  // Whether the connection was lost and is there again since the last call. What is said over it
  // from now on comes to a Router as from a stranger, and perhaps of another process.
  bool TakeReconnected();

  void* handle();          // of ZeroMQ, for the Poller
  void* monitor_handle();  // null: it watches no handshake

 private:
  struct Impl;
  explicit Dealer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::wire
