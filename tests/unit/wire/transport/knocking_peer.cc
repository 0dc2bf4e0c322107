#include "tests/unit/wire/transport/knocking_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "common/base/check.h"

namespace loopfleet::wire {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_in);
};

Address AddressOf(const std::string& host, int port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) return address;
  address = {.storage = {}, .size = sizeof(sockaddr_in6)};
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<std::uint16_t>(port));
  LF_CHECK(::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1, "{}", host);
  return address;
}

}  // namespace

KnockingPeer::KnockingPeer(const std::string& from, const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  std::string host = endpoint.substr(6, colon - 6);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const Address own = AddressOf(from, 0);
  const Address other = AddressOf(host, std::stoi(endpoint.substr(colon + 1)));
  fd_ = UniqueFd(::socket(own.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  LF_CHECK(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own.storage), own.size) == 0,
           "binding to {}: {}", from, std::strerror(errno));
  LF_CHECK(
      ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&other.storage), other.size) == 0 ||
          errno == EINPROGRESS,
      "connecting to {}: {}", endpoint, std::strerror(errno));
}

bool KnockingPeer::IsConnected() {
  pollfd item{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
  return ::poll(&item, 1, 0) == 1;
}

}  // namespace loopfleet::wire
