#include "kernel/channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "common/base/check.h"

namespace loopfleet {
namespace {

Error SystemError(const char* what) {
  if (errno == EPIPE || errno == ECONNRESET)
    return {ErrorKind::kClosed, "the peer closed the channel"};
  return {ErrorKind::kSystem, fmt::format("{}: {}", what, std::strerror(errno))};
}

union FdBuffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(kMaxPassedFds * sizeof(int))];
};

void TakeFds(msghdr& header, std::vector<UniqueFd>& fds) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

Result<std::pair<Channel, Channel>> Channel::MakePair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return std::unexpected(SystemError("socketpair"));
  }
  return std::pair(Channel(UniqueFd(ends[0])), Channel(UniqueFd(ends[1])));
}

Status Channel::WaitFor(short events, std::optional<Instant> deadline) {
  for (;;) {
    timespec left{};
    if (deadline) {
      const Nanos nanos = std::max(Nanos{0}, *deadline - Instant(std::chrono::steady_clock::now()));
      left.tv_sec = nanos.count() / 1'000'000'000;
      left.tv_nsec = nanos.count() % 1'000'000'000;
    }
    pollfd item{fd_.get(), events, 0};
    const int ready = ::ppoll(&item, 1, deadline ? &left : nullptr, nullptr);
    if (ready > 0) return {};
    if (ready == 0) return Fail(ErrorKind::kTimeout, "the other side did not answer in time");
    if (errno != EINTR) return std::unexpected(SystemError("ppoll"));
  }
}

Status Channel::Send(std::string_view bytes, std::optional<Instant> deadline,
                     std::span<const int> fds) {
  LF_CHECK(fds.size() <= kMaxPassedFds, "{} descriptors at once", fds.size());
  const std::uint64_t length = bytes.size();
  char prefix[sizeof length];
  std::memcpy(prefix, &length, sizeof length);
  std::size_t sent = 0;
  const std::size_t total = sizeof prefix + bytes.size();
  while (sent < total) {
    iovec parts[2];
    int part_count = 0;
    if (sent < sizeof prefix) parts[part_count++] = {prefix + sent, sizeof prefix - sent};
    const std::size_t body = sent < sizeof prefix ? 0 : sent - sizeof prefix;
    if (body < bytes.size()) {
      parts[part_count++] = {const_cast<char*>(bytes.data()) + body, bytes.size() - body};
    }
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = static_cast<std::size_t>(part_count);
    FdBuffer buffer{};
    if (sent == 0 && !fds.empty()) {  // descriptors travel with the first byte
      header.msg_control = buffer.bytes;
      header.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* part = CMSG_FIRSTHDR(&header);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
    }
    const ssize_t count = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      LF_TRY_VOID(WaitFor(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return std::unexpected(SystemError("sendmsg"));
    }
  }
  return {};
}

Result<std::size_t> Channel::ReadSome(std::span<char> room, std::optional<Instant> deadline,
                                      Accepts accepts) {
  for (;;) {
    iovec part{room.data(), room.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    FdBuffer buffer{};
    // Without this room the kernel drops any descriptors that were sent.
    if (accepts == Accepts::kDescriptorsToo) {
      header.msg_control = buffer.bytes;
      header.msg_controllen = sizeof buffer.bytes;
    }
    const ssize_t count = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
    if (count > 0) {
      if (accepts == Accepts::kDescriptorsToo) TakeFds(header, fds_);
      return static_cast<std::size_t>(count);
    }
    if (count == 0) return Fail(ErrorKind::kClosed, "the peer closed the channel");
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      has_waited_ = true;
      LF_TRY_VOID(WaitFor(POLLIN, deadline));
    } else if (errno != EINTR) {
      return std::unexpected(SystemError("recvmsg"));
    }
  }
}

Status Channel::ReadExactly(std::span<char> bytes, std::optional<Instant> deadline,
                            Accepts accepts) {
  const std::size_t kept = std::min(bytes.size(), ahead_end_ - ahead_at_);
  std::copy_n(ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_at_), kept, bytes.begin());
  ahead_at_ += kept;
  bytes = bytes.subspan(kept);
  while (!bytes.empty()) {
    LF_TRY(const std::size_t count, ReadSome(bytes, deadline, accepts));
    bytes = bytes.subspan(count);
  }
  return {};
}

// Reads ahead only when no bytes are left, and the kernel ends each read after the bytes that
// descriptors came with. So fds_ always belongs to the last message that has begun.
Result<std::string> Channel::ReceiveBytes(std::optional<Instant> deadline, std::size_t max_bytes,
                                          Accepts accepts) {
  constexpr std::size_t kAheadBytes = 4096;
  has_waited_ = false;
  if (ahead_at_ == ahead_end_) {
    ahead_.resize(kAheadBytes);  // allocates on the first call
    ahead_at_ = ahead_end_ = 0;
    LF_TRY(ahead_end_, ReadSome(ahead_, deadline, accepts));
  }
  std::uint64_t length = 0;
  LF_TRY_VOID(ReadExactly({reinterpret_cast<char*>(&length), sizeof length}, deadline, accepts));
  if (length > max_bytes) {
    return Fail(ErrorKind::kCorrupt, fmt::format("a message of {} bytes is announced", length));
  }
  std::string bytes(length, '\0');
  LF_TRY_VOID(ReadExactly(bytes, deadline, accepts));
  return bytes;
}

Result<std::string> Channel::Receive(std::optional<Instant> deadline, std::size_t max_bytes) {
  return ReceiveBytes(deadline, max_bytes, Accepts::kBytes);
}

Result<Channel::Message> Channel::ReceiveWithFds(std::size_t max_bytes,
                                                 std::optional<Instant> deadline) {
  LF_TRY(std::string bytes, ReceiveBytes(deadline, max_bytes, Accepts::kDescriptorsToo));
  Message message{.bytes = std::move(bytes), .fds = {}, .had_to_wait = has_waited_};
  if (ahead_at_ == ahead_end_) std::swap(message.fds, fds_);
  return message;
}

void Channel::PollUntilReadable(Nanos nap, Instant deadline) const {
  while (!IsReadable() && Instant(std::chrono::steady_clock::now()) < deadline) {
    std::this_thread::sleep_for(nap);
  }
}

bool Channel::AwaitReadable(Instant deadline) {
  if (ahead_at_ < ahead_end_) return true;
  const Status waited = WaitFor(POLLIN, deadline);
  return waited || waited.error().kind != ErrorKind::kTimeout;
}

bool Channel::IsReadable() const {
  if (ahead_at_ < ahead_end_) return true;
  pollfd item{fd_.get(), POLLIN, 0};
  return ::poll(&item, 1, 0) > 0;
}

}  // namespace loopfleet
