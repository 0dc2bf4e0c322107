#include "worker/processes/slot_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace loopfleet::worker {
namespace {

constexpr std::chrono::microseconds kRetryInterval{100};

Result<UniqueFd> OpenForLocking(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return fd;
  return Fail(ErrorKind::kSystem,
              fmt::format("the timing slot's lock needs {}: {}", path, std::strerror(errno)));
}

bool LockBefore(const UniqueFd& fd, Instant deadline, const std::atomic<bool>& stop) {
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (stop || Instant(std::chrono::steady_clock::now()) >= deadline) return false;
    std::this_thread::sleep_for(kRetryInterval);
  }
  return true;
}

}  // namespace

Result<SlotLock> SlotLock::Open(int core) {
  const std::string directory = fmt::format("/sys/devices/system/cpu/cpu{}", core);
  LF_TRY(UniqueFd turnstile, OpenForLocking(directory + "/uevent"));
  LF_TRY(UniqueFd slot, OpenForLocking(directory));
  return SlotLock(directory, std::move(turnstile), std::move(slot));
}

SlotLock::SlotLock(std::string path, UniqueFd turnstile, UniqueFd slot)
    : path_(std::move(path)), turnstile_(std::move(turnstile)), slot_(std::move(slot)) {}

bool SlotLock::Acquire(Nanos timeout, const std::atomic<bool>& stop) {
  const Instant deadline = Instant(std::chrono::steady_clock::now()) + timeout;
  if (!LockBefore(turnstile_, deadline, stop)) return false;
  const bool locked = LockBefore(slot_, deadline, stop);
  ::flock(turnstile_.get(), LOCK_UN);
  return locked;
}

void SlotLock::Release() { ::flock(slot_.get(), LOCK_UN); }

bool SlotLock::HasWaiters() {
  if (::flock(turnstile_.get(), LOCK_EX | LOCK_NB) != 0) return true;
  ::flock(turnstile_.get(), LOCK_UN);
  return false;
}

}  // namespace loopfleet::worker
