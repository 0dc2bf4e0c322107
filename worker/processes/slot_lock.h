#pragma once
// SlotLock: one timing slot per processor core of a host, whoever runs workers on it. The lock is
// an flock on the core's own directory in sysfs: there for everybody, nothing to create or leave
// behind, freed by the system when the process ends. Belongs to one thread.
//
// (Containers with network namespaces of their own see another sysfs, and do not exclude each
// other.)

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
  // While it is held: somebody else waits for it.
  bool IsWanted();
  // What is locked.
  const std::string& path() const { return path_; }

 private:
  SlotLock(std::string path, UniqueFd turnstile, UniqueFd slot);

  std::string path_;

  // Who holds the slot may come back for it before a waiting process has even woken up. So one
  // waits in the turnstile, which whoever wants the slot has to pass.
  UniqueFd turnstile_;
  UniqueFd slot_;
};

}  // namespace loopfleet::worker
