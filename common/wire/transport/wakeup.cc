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

// The only ways to fail are a counter that is full, which wakes just as well, and a closed
// descriptor.
void Wakeup::Signal() noexcept {
  const int saved_errno = errno;  // a signal handler must leave it alone
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
  errno = saved_errno;
}

void Wakeup::Clear() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(fd_, &count, sizeof count);
}

}  // namespace loopfleet::wire
