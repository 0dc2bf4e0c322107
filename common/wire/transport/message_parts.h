#pragma once
// Internal to wire: messages of several parts.

#include <zmq.hpp>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::wire {

constexpr int kMaxMalformedInARow = 100;  // skipped in one call of Receive() of a Dealer or Router

// Repeats a call of libzmq that a signal interrupts, as a stop and continuation of the process may,
// too. Nothing is done before the interruption.
template <class Call>
auto Uninterrupted(const Call& call) {
  for (;;) {
    try {
      return call();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

// Publishes these events of a socket at an inproc endpoint. Throws zmq::error_t.
void Monitor(zmq::socket_t& socket, const std::string& endpoint, int events);

// Receives the next message; false if none is waiting. `parts` gets its first `kept` parts, `count`
// the number of all.
bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts, std::size_t kept,
                  std::size_t& count);

// The next part of a message; false if none is waiting.
bool ReceivePart(zmq::socket_t& socket, zmq::message_t& part);

// False if it would block; nothing is sent then.
bool SendPart(zmq::socket_t& socket, zmq::message_t part, zmq::send_flags flags);
bool SendPart(zmq::socket_t& socket, std::string_view part, zmq::send_flags flags);

}  // namespace loopfleet::wire
