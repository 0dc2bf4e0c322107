#include "tests/unit/wire/transport/raw_peer.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "common/base/check.h"

namespace loopfleet::wire {
namespace {

using namespace std::string_literals;

std::string BigEndian(std::uint64_t value, int bytes) {
  std::string text;
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> shift);
  }
  return text;
}

}  // namespace

RawPeer::RawPeer(const std::string& tcp_endpoint)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(
      static_cast<std::uint16_t>(std::stoi(tcp_endpoint.substr(tcp_endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  LF_CHECK(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
           "connecting to {}", tcp_endpoint);
}

RawPeer RawPeer::Accept(int listener) {
  pollfd item{.fd = listener, .events = POLLIN, .revents = 0};
  LF_CHECK(::poll(&item, 1, 60'000) == 1, "nobody connects");
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  LF_CHECK(fd, "accepting: {}", std::strerror(errno));
  return RawPeer(std::move(fd));
}

void RawPeer::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written <= 0) return;  // the other side has closed
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string RawPeer::Read(std::size_t count) {
  std::string bytes(count, '\0');
  LF_CHECK(::recv(fd_.get(), bytes.data(), count, MSG_WAITALL) == static_cast<ssize_t>(count),
           "the other side closed while {} bytes were expected", count);
  return bytes;
}

// https://rfc.zeromq.org/spec/23: signature, version 3.0, mechanism NULL, filler; then READY.
// Messages may follow only after the other side's READY.
void RawPeer::ShakeHands(std::string_view socket_type, std::string_view name) {
  constexpr std::size_t kGreetingBytes = 64;
  std::string greeting = "\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL"s;
  greeting.resize(kGreetingBytes, '\0');
  Write(greeting);
  std::string ready =
      "\x05READY\x0bSocket-Type"s + BigEndian(socket_type.size(), 4) + std::string(socket_type);
  if (!name.empty()) {
    ready += "\x08Identity"s + BigEndian(name.size(), 4) + std::string(name);
  }
  Write("\x04"s + static_cast<char>(ready.size()) + ready);
  Read(kGreetingBytes);
  const std::string header = Read(2);
  LF_CHECK(Read(static_cast<std::uint8_t>(header[1])).starts_with("\x05READY"), "no READY");
}

void RawPeer::WriteFrame(std::string_view body, More more) {
  LF_CHECK(body.size() < 256, "a short frame of {} bytes", body.size());
  Write(std::string{more == More::kFollows ? '\x01' : '\0', static_cast<char>(body.size())});
  Write(body);
}

void RawPeer::WriteFrameHeader(std::uint64_t length) { Write("\x02"s + BigEndian(length, 8)); }

bool RawPeer::IsClosedByPeer() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    pollfd item{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    ::poll(&item, 1, 100);
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

bool RawPeer::HearsWithin(std::chrono::milliseconds limit) const {
  pollfd item{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&item, 1, static_cast<int>(limit.count())) == 1;
}

void RawPeer::Reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  LF_CHECK(::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0, "{}",
           std::strerror(errno));
  fd_ = UniqueFd();
}

void RawPeer::Vanish() {
  sock_filter drop_all{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog program{.len = 1, .filter = &drop_all};
  LF_CHECK(::setsockopt(fd_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0,
           "{}", std::strerror(errno));
}

}  // namespace loopfleet::wire
