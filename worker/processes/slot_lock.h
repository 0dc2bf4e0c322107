#pragma once
// SlotLock: makes a processor core the timing slot of one process at a time, whichever users run
// workers on the host. The lock is an flock, which the system frees when the process ends. Belongs
// to one thread.
//
// What is locked: files in kSlotLockDirectory if the host has it, so that only the users that it
// lets in can hold the lock; else the core's directory in sysfs, which exists for every user, and
// which any user can lock. Only root can make the directory, so all workers of a host agree.
// Containers that see another /run, or have another sysfs with their own network namespace, do not
// exclude each other.

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::worker {

inline constexpr const char* kSlotLockDirectory = "/run/loopfleet-slots";

class SlotLock {
 public:
  // `directory`: tests have another. kSystem: it exists and this user may not use it, or every user
  // may.
  static Result<SlotLock> Open(int core,
                               const std::filesystem::path& directory = kSlotLockDirectory);

  // True once it is held. False after `timeout`, or once `stop` is set. Fair between processes.
  bool Acquire(Nanos timeout, const std::atomic<bool>& stop);
  void Release();
  // Another process waits for the lock. Call while holding it.
  bool HasWaiters();
  // The locked file or directory.
  const std::string& path() const { return path_; }
  // Any user of the host can hold it.
  bool is_open_to_all() const { return is_open_to_all_; }

 private:
  SlotLock(std::string path, bool is_open_to_all, UniqueFd turnstile, UniqueFd slot);

  std::string path_;
  bool is_open_to_all_;

  // A holder could release the slot and lock it again before a waiting process wakes up. So a
  // process has to hold the turnstile while it waits for the slot.
  UniqueFd turnstile_;
  UniqueFd slot_;
};

}  // namespace loopfleet::worker
