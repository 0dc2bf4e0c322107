#pragma once
// ScratchDirectory: a directory that its destructor removes. On the project's disk, because /tmp is
// memory on many machines, where a sync costs nothing.

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <utility>

#include "common/base/result.h"

namespace loopfleet::bench {

class ScratchDirectory {
 public:
  static Result<ScratchDirectory> Create() {
    std::string pattern = (std::filesystem::current_path() / "bench_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      return Fail(ErrorKind::kSystem, "cannot make a directory here: " + pattern);
    }
    return ScratchDirectory(pattern);
  }
  ScratchDirectory(ScratchDirectory&& other) noexcept
      : path_(std::exchange(other.path_, std::filesystem::path())) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory() {
    if (!path_.empty()) std::filesystem::remove_all(path_);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace loopfleet::bench
