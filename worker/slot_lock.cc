#include "worker/slot_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <fstream>
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

// "3,7" or "2-3", as sysfs writes lists; nothing where it is silent.
std::vector<int> ThreadsOfCore(const std::filesystem::path& sys, int core) {
  std::ifstream stream(sys /
                       fmt::format("devices/system/cpu/cpu{}/topology/thread_siblings_list", core));
  std::vector<int> threads;
  int first = 0;
  while (stream >> first && first >= 0 && first < CPU_SETSIZE) {
    int last = first;
    if (stream.peek() == '-') {
      stream.ignore();
      stream >> last;
    }
    for (int thread = first; thread <= last && thread < CPU_SETSIZE; ++thread) {
      threads.push_back(thread);
    }
    if (stream.peek() == ',') stream.ignore();
  }
  return threads;
}

}  // namespace

Result<CorePlan> PlanCores(const std::filesystem::path& sys) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return Fail(ErrorKind::kSystem, fmt::format("sched_getaffinity: {}", std::strerror(errno)));
  }
  CorePlan plan;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) plan.slot_core = core;
  }
  CPU_CLR(static_cast<std::size_t>(plan.slot_core), &allowed);
  for (const int sibling : ThreadsOfCore(sys, plan.slot_core)) {
    CPU_CLR(static_cast<std::size_t>(sibling), &allowed);
  }
  if (CPU_COUNT(&allowed) > 0) plan.others = allowed;
  return plan;
}

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

bool SlotLock::IsWanted() {
  if (::flock(turnstile_.get(), LOCK_EX | LOCK_NB) != 0) return true;
  ::flock(turnstile_.get(), LOCK_UN);
  return false;
}

}  // namespace loopfleet::worker
