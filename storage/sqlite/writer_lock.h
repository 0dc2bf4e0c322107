#pragma once
// WriterLock: the right to write a database, held through a locked file beside it. The kernel frees
// it when the process ends, however it ends; the file itself stays.

#include <chrono>
#include <filesystem>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::storage {

class WriterLock {
 public:
  // Waits at most `wait` for another holder to release it.
  // kUnavailable: still held; the message names the holder's process id. kFull, kSystem: the lock
  // file cannot be opened, locked or written.
  static Result<WriterLock> Take(const std::filesystem::path& database,
                                 std::chrono::milliseconds wait);

 private:
  explicit WriterLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace loopfleet::storage
