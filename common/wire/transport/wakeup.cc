#include "common/wire/transport/wakeup.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"

namespace loopfleet::wire {

Wakeup::Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  LF_CHECK(fd_ >= 0, "eventfd: {}", std::strerror(errno));
}

Wakeup::~Wakeup() { ::close(fd_); }

// The write fails only if the counter is full, which also wakes, or the descriptor is closed.
void Wakeup::Signal() noexcept {
  const int saved_errno = errno;  // a signal handler must preserve it
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
  errno = saved_errno;
}

void Wakeup::Clear() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(fd_, &count, sizeof count);
}

}  // namespace loopfleet::wire
