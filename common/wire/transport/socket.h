#pragma once
// ZeroMQ sockets as the protocol uses them: a Router for each kind of peer at the coordinator, a
// Dealer at clients and workers. Nothing ever blocks in Send; nothing is dropped silently. Every
// object belongs to one thread; Wakeup alone may be signalled from others.
//
// Sockets that are given keys speak CURVE and nothing else: what they send is encrypted, and
// messages come only from peers whose keys are authorized (authenticator.h). Without keys they
// speak to their own machine only.

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/keys/role.h"
#include "common/wire/transport/authenticator.h"

namespace loopfleet::wire {

enum class Protection : std::uint8_t { kNone, kKeys };

// "tcp://127.0.0.1:5570", "tcp://127.0.0.1:0" (any free port), "ipc:///run/x/clients".
// kInvalid: not an endpoint of a kind that is served. Without keys only loopback and ipc:// in a
// directory of mode 0700 owned by this user are served (promise I5); the error says how to make
// keys. With keys also other addresses: "tcp://0.0.0.0:5570", "tcp://[::]:5570".
Status CheckListenEndpoint(std::string_view endpoint, Protection protection = Protection::kNone);
// The same for the other side, which with keys may also name a host: "tcp://cluster.example:5570".
Status CheckConnectEndpoint(std::string_view endpoint, Protection protection = Protection::kNone);

class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// The routing id of a connection: new for each reconnect, unless the peer chose one itself, which
// it may. It says where an answer goes, and not who asks.
using PeerId = std::string;

// Who sent a message, by the key of its connection.
struct Sender {
  enum class Standing : std::uint8_t {
    kWithoutKey,  // this socket asks for none
    kAuthorized,  // `principal` is who
    kRevoked,     // it was authorized when it connected, and is no more: not to be acted upon
  };
  Standing standing = Standing::kWithoutKey;
  Principal principal;
  std::string key;  // kAuthorized: the text of its public key
};

struct Received {
  PeerId peer;
  std::string frame;
  Sender sender;
};

enum class SendResult {
  kSent,
  kWouldBlock,   // the peer does not read as fast as it is written to: nothing was sent
  kUnreachable,  // the peer is gone
};

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

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

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

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Dealer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Ends a Poller's wait from another thread or a signal handler.
class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  void Signal() noexcept;  // async-signal-safe
  void Clear() noexcept;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Waits until one of its sockets can be read, or a wakeup was signalled (and clears it), or time is
// up. A Dealer that watches its handshakes counts as one that can be read until it is asked for
// what came of them.
class Poller {
 public:
  void Add(Router& router);
  void Add(Dealer& dealer);
  void Add(Wakeup& wakeup);
  void Add(Authenticator& authenticator);
  void AddReadable(int fd);  // any other thing that can be read; its owner reads it
  void Wait(Nanos timeout);

 private:
  struct Item {
    void* socket = nullptr;
    int fd = -1;
    Wakeup* wakeup = nullptr;
  };
  std::vector<Item> items_;
};

}  // namespace loopfleet::wire
