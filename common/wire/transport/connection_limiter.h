#pragma once
// Internal to wire: ConnectionLimiter, which bounds new connections to a TCP socket before they
// authenticate. It counts connections by the socket's monitor events and closes the socket to new
// ones while no token is left (ConnectionTokens), because libzmq accepts every connection and works
// through its handshake on the thread that moves all messages; and while the process runs out of
// file descriptors (DescriptorReserve).
//
// Closed means that a BPF filter on the listening socket drops SYNs. The peer's kernel retransmits
// them, after a second and then more rarely, so peers are delayed, not refused. Established
// connections are not touched. Peers are not told apart: an address's own rate is the firewall's
// task (docs/OPERATIONS.md).
//
// It has a thread, so that a flood does not wake the coordinator's. The thread sleeps while no peer
// connects and polls every few milliseconds while one does.

#include <zmq.hpp>

#include <stop_token>
#include <thread>

#include "common/base/unique_fd.h"
#include "common/wire/transport/connection_tokens.h"
#include "common/wire/transport/descriptor_reserve.h"
#include "common/wire/transport/wakeup.h"

namespace loopfleet::wire {

class ConnectionLimiter {
 public:
  enum class Rate : std::uint8_t {
    kUnlimited,  // a socket without keys: closed only while descriptors run out
    kLimited,
  };

  // Before `router` is bound to `listener`, which is duplicated. Throws zmq::error_t.
  ConnectionLimiter(zmq::context_t& context, zmq::socket_t& router, int listener, Rate rate);
  // By the thread that owns the router, before the router is destroyed.
  ~ConnectionLimiter();
  ConnectionLimiter(const ConnectionLimiter&) = delete;
  ConnectionLimiter& operator=(const ConnectionLimiter&) = delete;

 private:
  void Run(const std::stop_token& stopping);
  void WaitForEvents();
  void CountEvents();
  void Decide();
  void SetOpen(bool is_open, Instant now);

  zmq::socket_t& router_;
  zmq::socket_t monitor_;
  const UniqueFd listener_;
  ConnectionTokens tokens_;
  DescriptorReserve reserve_;
  bool is_open_ = true;
  std::uint64_t closed_count_ = 0;  // since the last log line
  Instant next_log_{};
  Instant next_failure_log_{};
  Instant next_reserve_log_{};
  Wakeup stop_;
  std::jthread thread_;
};

}  // namespace loopfleet::wire
