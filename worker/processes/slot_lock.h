#pragma once
// SlotLock: makes a processor core the timing slot of one process at a time, whichever users run
// workers on the host. The lock is an flock on the core's directory in sysfs: it exists for every
// user, leaves no file behind, and is freed by the system when the process ends. Belongs to one
// thread.
//
// Containers with network namespaces of their own see another sysfs, and do not exclude each other.

#include <atomic>
#include <chrono>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::worker {

class SlotLock {
 public:
  static Result<SlotLock> Open(int core);

  // True once it is held. False after `timeout`, or once `stop` is set. Fair between processes.
  bool Acquire(Nanos timeout, const std::atomic<bool>& stop);
  void Release();
  // Another process waits for the lock. Call while holding it.
  bool HasWaiters();
  // The locked directory.
  const std::string& path() const { return path_; }

 private:
  SlotLock(std::string path, UniqueFd turnstile, UniqueFd slot);

  std::string path_;

  // A holder could release the slot and lock it again before a waiting process wakes up. So a
  // process has to hold the turnstile while it waits for the slot.
  UniqueFd turnstile_;
  UniqueFd slot_;
};

}  // namespace loopfleet::worker
