#include "common/wire/transport/descriptor_reserve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <thread>

#include "common/base/unique_fd.h"

namespace loopfleet::wire {
namespace {

constexpr int kMostAtOnce = 4096;  // connections closed: without a filter more keep coming

// Gives the calling thread its own descriptor table, which holds `only`. The process's table does
// not change. On failure, errno has the reason.
bool TakeOwnTable(int only) {
  constexpr auto kLast = std::numeric_limits<unsigned>::max();
  const auto first_above = static_cast<unsigned>(only) + 1;
  if (::close_range(first_above, kLast, CLOSE_RANGE_UNSHARE) != 0) return false;
  return only == 0 || ::close_range(0, static_cast<unsigned>(only) - 1, 0) == 0;
}

}  // namespace

// The kernel assigns the lowest free number, so all below it are in use.
bool DescriptorReserve::IsTouched() const {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const UniqueFd lowest(::fcntl(listener_, F_DUPFD_CLOEXEC, 0));
  return !lowest || static_cast<rlim_t>(lowest.get()) >= limit.rlim_cur - limit.rlim_cur / 10;
}

// On a thread with its own descriptor table: libzmq, which accepts from the same queue, could take
// any descriptor that was freed in the shared one.
Status DescriptorReserve::HangUpOnQueue() const {
  pollfd queue{.fd = listener_, .events = POLLIN, .revents = 0};
  if (::poll(&queue, 1, 0) <= 0) return {};
  int failure = 0;
  const auto hang_up = [this, &failure] {
    if (!TakeOwnTable(listener_)) {
      failure = errno;
      return;
    }
    for (int i = 0; i < kMostAtOnce; ++i) {
      if (!UniqueFd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC))) return;
    }
  };
  try {
    std::jthread(hang_up).join();
  } catch (const std::system_error& error) {  // no thread either
    failure = error.code().value();
  }
  if (failure == 0) return {};
  return Fail(ErrorKind::kSystem, fmt::format("cannot hang up on a listening socket's queue: {}",
                                              std::strerror(failure)));
}

}  // namespace loopfleet::wire
