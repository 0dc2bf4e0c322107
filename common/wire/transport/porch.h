#pragma once
// Internal to wire: Porch, where peers of a TCP socket stand before they are accepted, and of a
// guarded one, before they authenticate. Counts them by what ZeroMQ tells of the socket's
// connections, and has the kernel keep out more than Arrivals allows: libzmq accepts whatever
// connects, and works through each handshake on the thread that moves everybody's messages. Keeps
// everybody out while descriptors run out.
//
// A thread of its own, so that a flood wakes the coordinator's no more often than before: it sleeps
// while nobody connects, and looks every few milliseconds while somebody does. What arrives between
// two looks comes in and is counted: later arrivals wait for it.

#include <zmq.hpp>

#include <memory>
#include <stop_token>
#include <thread>

#include "common/base/unique_fd.h"
#include "common/wire/transport/arrivals.h"
#include "common/wire/transport/connection_filter.h"
#include "common/wire/transport/descriptor_reserve.h"
#include "common/wire/transport/known_addresses.h"
#include "common/wire/transport/wakeup.h"

namespace loopfleet::wire {

class Porch {
 public:
  // Before `router` is bound to `listener`, which is duplicated. `known`: null if it is not
  // guarded; then everybody is let in while there are descriptors. Throws zmq::error_t.
  Porch(zmq::context_t& context, zmq::socket_t& router, int listener,
        std::shared_ptr<const KnownAddresses> known);
  // By the thread that owns the router, before the router goes.
  ~Porch();
  Porch(const Porch&) = delete;
  Porch& operator=(const Porch&) = delete;

 private:
  void Run(const std::stop_token& stopping);
  void WaitForNews();
  void CountEvents();
  void Decide();
  void Let(Admit who, Instant now);

  zmq::socket_t& router_;
  zmq::socket_t monitor_;
  const UniqueFd listener_;
  const std::shared_ptr<const KnownAddresses> known_;
  Arrivals arrivals_;
  ConnectionFilter filter_;
  DescriptorReserve reserve_;
  Admit admitted_ = Admit::kEverybody;  // as the filter is
  std::uint64_t known_version_ = 0;     // of the addresses in it
  std::uint64_t held_off_count_ = 0;    // how often strangers had to wait, and was not logged
  Instant next_log_{};
  Instant next_failure_log_{};
  Instant next_reserve_log_{};
  Wakeup stop_;
  std::jthread thread_;
};

}  // namespace loopfleet::wire
