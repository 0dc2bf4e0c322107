#pragma once
// Internal to wire: what its sources share of ZeroMQ.

#include <zmq.hpp>

#include <cstddef>
#include <vector>

#include "common/wire/transport/socket.h"

namespace loopfleet::wire {

struct Context::Impl {
  zmq::context_t context;
};

// All parts of the next message; false if there is none. Only the first `kept` parts are kept.
bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts, std::size_t kept,
                  std::size_t& count);

}  // namespace loopfleet::wire
