#include "bench/peers/peer_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kStartLimit = std::chrono::seconds(10);

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

template <class Address>
Result<UniqueFd> ConnectTo(int family, const Address& address) {
  const auto end = SteadyClock::now() + kStartLimit;
  while (SteadyClock::now() < end) {
    UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return fd;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return Fail(ErrorKind::kTimeout, "a peer does not start");
}

}  // namespace

Result<PeerConnection> PeerConnection::OpenUnix(const std::filesystem::path& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  LF_TRY(UniqueFd fd, ConnectTo(AF_UNIX, address));
  return PeerConnection(std::move(fd));
}

Result<PeerConnection> PeerConnection::OpenTcp(std::uint16_t port) {
  LF_TRY(UniqueFd fd, ConnectTo(AF_INET, Loopback(port)));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return PeerConnection(std::move(fd));
}

Status PeerConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (wrote <= 0) return Fail(ErrorKind::kClosed, "a peer closed the connection");
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Status PeerConnection::Fill() {
  char bytes[65536];
  const ssize_t got = ::read(fd_.get(), bytes, sizeof bytes);
  if (got <= 0) return Fail(ErrorKind::kClosed, "a peer closed the connection");
  buffer_.erase(0, std::exchange(position_, 0));
  buffer_.append(bytes, static_cast<std::size_t>(got));
  return {};
}

Result<std::string> PeerConnection::Line() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n", position_)) == std::string::npos) LF_TRY_VOID(Fill());
  std::string line = buffer_.substr(position_, end - position_);
  position_ = end + 2;
  return line;
}

Status PeerConnection::Drop(std::size_t bytes) {
  while (buffer_.size() - position_ < bytes) LF_TRY_VOID(Fill());
  position_ += bytes;
  return {};
}

Result<std::string> PeerConnection::Take(std::size_t bytes) {
  while (buffer_.size() - position_ < bytes) LF_TRY_VOID(Fill());
  std::string taken = buffer_.substr(position_, bytes);
  position_ += bytes;
  return taken;
}

Result<std::uint16_t> FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Fail(ErrorKind::kSystem, "no free port");
  }
  return ntohs(address.sin_port);
}

}  // namespace loopfleet::bench
