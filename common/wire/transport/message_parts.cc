#include "common/wire/transport/message_parts.h"

#include <utility>

namespace loopfleet::wire {

void Monitor(zmq::socket_t& socket, const std::string& endpoint, int events) {
  Uninterrupted([&] {
    if (::zmq_socket_monitor(socket.handle(), endpoint.c_str(), events) != 0) throw zmq::error_t();
  });
}

bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts, std::size_t kept,
                  std::size_t& count) {
  parts.clear();
  count = 0;
  for (;;) {
    zmq::message_t part;
    if (!ReceivePart(socket, part)) return false;
    const bool more = part.more();
    ++count;
    if (parts.size() < kept) parts.push_back(std::move(part));
    if (!more) return true;
  }
}

bool ReceivePart(zmq::socket_t& socket, zmq::message_t& part) {
  return Uninterrupted([&] { return socket.recv(part, zmq::recv_flags::dontwait); }).has_value();
}

bool SendPart(zmq::socket_t& socket, zmq::message_t part, zmq::send_flags flags) {
  return Uninterrupted([&] { return socket.send(part, flags | zmq::send_flags::dontwait); })
      .has_value();
}

bool SendPart(zmq::socket_t& socket, std::string_view part, zmq::send_flags flags) {
  return SendPart(socket, zmq::message_t(part.data(), part.size()), flags);
}

}  // namespace loopfleet::wire
