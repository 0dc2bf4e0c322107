#include "common/wire/transport/socket_options.h"

#include <fmt/format.h>

#include <cerrno>

#include "common/base/check.h"
#include "common/wire/bounds.h"

namespace loopfleet::wire {

namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds kLinger = 500ms;  // for a last message when a socket closes
constexpr milliseconds kHandshakeLimit = 5s;
constexpr std::chrono::seconds kProbeInterval = 1s;  // of TCP keepalive

int Count(milliseconds time) { return static_cast<int>(time.count()); }

bool IsIpv6(const Endpoint& endpoint) {
  const auto* tcp = std::get_if<TcpEndpoint>(&endpoint);
  return tcp != nullptr && tcp->host.find(':') != std::string::npos;
}

}  // namespace

void SetCommonOptions(zmq::socket_t& socket, const Endpoint& endpoint, int max_unsent,
                      int max_unreceived, milliseconds max_silence) {
  socket.set(zmq::sockopt::ipv6, IsIpv6(endpoint));
  socket.set(zmq::sockopt::linger, Count(kLinger));
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMaxMessageBytes));
  socket.set(zmq::sockopt::handshake_ivl, Count(kHandshakeLimit));
  // No ZeroMQ heartbeats (heartbeat_ivl): libzmq aborts the process when it sends or answers one
  // over a connection that was reset while max_unreceived messages wait (docs/SECURITY.md). TCP
  // keepalive detects an absent peer instead, after max_silence.
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, static_cast<int>(kProbeInterval.count()));
  socket.set(zmq::sockopt::tcp_keepalive_intvl, static_cast<int>(kProbeInterval.count()));
  socket.set(zmq::sockopt::tcp_maxrt, Count(max_silence));
  socket.set(zmq::sockopt::sndhwm, max_unsent);
  socket.set(zmq::sockopt::rcvhwm, max_unreceived);
}

std::string ZmqName(const Endpoint& endpoint) {
  if (const auto* tcp = std::get_if<TcpEndpoint>(&endpoint)) {
    return IsIpv6(endpoint) ? fmt::format("tcp://[{}]:{}", tcp->host, tcp->port)
                            : fmt::format("tcp://{}:{}", tcp->host, tcp->port);
  }
  return "ipc://" + std::get<IpcEndpoint>(endpoint).path;
}

std::unexpected<Error> FailOf(const zmq::error_t& error, std::string_view doing,
                              std::string_view endpoint) {
  const ErrorKind kind = error.num() == EADDRINUSE ? ErrorKind::kUnavailable : ErrorKind::kSystem;
  return Fail(kind, fmt::format("cannot {} {}: {}", doing, endpoint, error.what()));
}

void CheckSize(std::string_view frame) {
  LF_CHECK(frame.size() <= kMaxMessageBytes,
           "a frame of {} bytes: messages are cut before they are sent", frame.size());
}

}  // namespace loopfleet::wire
