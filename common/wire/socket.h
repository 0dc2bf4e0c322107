#pragma once
// ZeroMQ sockets as the protocol uses them: a Router for each kind of peer at the coordinator, a
// Dealer at clients and workers. Nothing ever blocks in Send; nothing is dropped silently. Every
// object belongs to one thread; Wakeup alone may be signalled from others.

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace loopfleet::wire {

// "tcp://127.0.0.1:5570", "tcp://127.0.0.1:0" (any free port), "ipc:///run/x/clients".
// kInvalid: not an endpoint of a kind that is served. Without keys only loopback and ipc:// in a
// directory of mode 0700 owned by this user are served (promise I5).
Status CheckEndpoint(std::string_view endpoint);

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

// The routing id that a Router gave to a connection: random, and new for each reconnect.
using PeerId = std::string;

struct Received {
  PeerId peer;
  std::string frame;
};

enum class SendResult {
  kSent,
  kWouldBlock,   // the peer does not read as fast as it is written to: try later
  kUnreachable,  // the peer is gone
};

class Router {
 public:
  struct Options {
    int high_water_mark = 1000;  // messages queued for each peer, each way
  };
  static Result<Router> Bind(Context& context, std::string_view endpoint, const Options& options);
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  const std::string& endpoint() const;  // with the real port
  SendResult Send(const PeerId& peer, std::string_view frame);
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
  // Connects in the background and reconnects by itself, with growing pauses.
  static Result<Dealer> Connect(Context& context, std::string_view endpoint);
  Dealer(Dealer&&) noexcept;
  Dealer& operator=(Dealer&&) noexcept;
  ~Dealer();

  SendResult Send(std::string_view frame);
  std::optional<std::string> Receive();

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
// up.
class Poller {
 public:
  void Add(Router& router);
  void Add(Dealer& dealer);
  void Add(Wakeup& wakeup);
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
