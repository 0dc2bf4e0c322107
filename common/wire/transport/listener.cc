#include "common/wire/transport/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace loopfleet::wire {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// The host is an address, as ParseListenEndpoint guarantees.
Address AddressOf(const TcpEndpoint& endpoint) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    address.size = sizeof *v4;
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET6, endpoint.host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(endpoint.port);
    address.size = sizeof *v6;
  }
  return address;
}

}  // namespace

Result<UniqueFd> ListenOn(const TcpEndpoint& endpoint, int backlog) {
  const Address address = AddressOf(endpoint);
  const int on = 1;
  const int off = 0;
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool is_v6 = address.storage.ss_family == AF_INET6;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      // [::] accepts IPv4, too, as with ZeroMQ.
      (is_v6 && ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      ::listen(fd.get(), backlog) != 0) {
    const std::string host = is_v6 ? "[" + endpoint.host + "]" : endpoint.host;
    return Fail(
        errno == EADDRINUSE ? ErrorKind::kUnavailable : ErrorKind::kSystem,
        fmt::format("cannot listen on tcp://{}:{}: {}", host, endpoint.port, std::strerror(errno)));
  }
  return fd;
}

}  // namespace loopfleet::wire
