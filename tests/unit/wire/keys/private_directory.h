#pragma once
// PrivateDirectory: a fresh directory of mode 0700, removed with its contents on destruction.

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "common/base/check.h"

namespace loopfleet::wire {

class PrivateDirectory {
 public:
  PrivateDirectory() : path_("/tmp/loopfleet-wire-XXXXXX") {
    LF_CHECK(::mkdtemp(path_.data()) != nullptr, "cannot make {}", path_);
  }
  ~PrivateDirectory() { std::filesystem::remove_all(path_); }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace loopfleet::wire
