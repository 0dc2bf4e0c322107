#pragma once
// ScratchDir: a private directory (0700) that is removed when its owner ends, even by SIGKILL: a
// small guardian process waits for that and removes it. Create it before any thread starts.

#include <sys/types.h>

#include <filesystem>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::client {

class ScratchDir {
 public:
  // Under TMPDIR if a socket's path fits there (107 bytes), else under /tmp.
  static Result<ScratchDir> Create();
  static Result<ScratchDir> CreateIn(const std::filesystem::path& parent);
  ScratchDir(ScratchDir&& other) noexcept;
  ScratchDir& operator=(ScratchDir&&) = delete;
  ~ScratchDir();  // removes the directory; its writers must have ended

  const std::filesystem::path& path() const { return path_; }

 private:
  ScratchDir() = default;
  std::filesystem::path path_;
  pid_t cleaner_ = -1;
  UniqueFd life_;  // the guardian acts when the last copy of this end of a pipe is closed
};

}  // namespace loopfleet::client
