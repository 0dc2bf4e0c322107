#pragma once
// Internal to wire: messages of several parts.

#include <zmq.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace loopfleet::wire {

constexpr int kMaxMalformedInARow = 100;  // skipped in one call of Receive() of a Dealer or Router

// Receives the next message; false if none is waiting. `parts` gets its first `kept` parts, `count`
// the number of all.
bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts, std::size_t kept,
                  std::size_t& count);

// False if it would block; nothing is sent then.
bool SendPart(zmq::socket_t& socket, std::string_view part, zmq::send_flags flags);

}  // namespace loopfleet::wire
