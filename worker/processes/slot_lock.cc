#include "worker/processes/slot_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace loopfleet::worker {
namespace {

constexpr std::chrono::microseconds kRetryInterval{100};

Result<UniqueFd> OpenForLocking(const std::string& path, int flags = 0) {
  constexpr mode_t kGroupReads = 0640;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags, kGroupReads));
  if (!fd) {
    return Fail(ErrorKind::kSystem,
                fmt::format("the timing slot's lock needs {}: {}", path, std::strerror(errno)));
  }
  // The umask may have left the group out. Fails on a file of another user, whose worker did this.
  if ((flags & O_CREAT) != 0) ::fchmod(fd.get(), kGroupReads);
  return fd;
}

bool LockBefore(const UniqueFd& fd, Instant deadline, const std::atomic<bool>& stop) {
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (stop || Instant(std::chrono::steady_clock::now()) >= deadline) return false;
    std::this_thread::sleep_for(kRetryInterval);
  }
  return true;
}

}  // namespace

Result<SlotLock> SlotLock::Open(int core, const std::filesystem::path& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) {
    const std::string in_sysfs = fmt::format("/sys/devices/system/cpu/cpu{}", core);
    LF_TRY(UniqueFd turnstile, OpenForLocking(in_sysfs + "/uevent"));
    LF_TRY(UniqueFd slot, OpenForLocking(in_sysfs));
    return SlotLock(in_sysfs, true, std::move(turnstile), std::move(slot));
  }
  if ((status.st_mode & S_IRWXO) != 0) {
    return Fail(
        ErrorKind::kSystem,
        fmt::format("{} has the locks of timing cores and is open to every user: chmod o= {}",
                    directory.string(), directory.string()));
  }
  const std::string path = directory / fmt::format("cpu{}", core);
  constexpr int kMake = O_CREAT | O_NOFOLLOW;
  LF_TRY(UniqueFd turnstile, OpenForLocking(path + ".turnstile", kMake));
  LF_TRY(UniqueFd slot, OpenForLocking(path, kMake));
  return SlotLock(path, false, std::move(turnstile), std::move(slot));
}

SlotLock::SlotLock(std::string path, bool is_open_to_all, UniqueFd turnstile, UniqueFd slot)
    : path_(std::move(path)),
      is_open_to_all_(is_open_to_all),
      turnstile_(std::move(turnstile)),
      slot_(std::move(slot)) {}

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
