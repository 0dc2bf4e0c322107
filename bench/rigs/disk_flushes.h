#pragma once
// DiskFlushes: how long the disk takes to make one page durable, again and again on a thread of its
// own. A commit beside it cannot be faster than what the disk then does.

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::bench {

class DiskFlushes {
 public:
  // Writes and flushes a file of its own, on the disk of `beside`, until destroyed.
  static Result<std::unique_ptr<DiskFlushes>> Start(const std::filesystem::path& beside);
  ~DiskFlushes();
  DiskFlushes(const DiskFlushes&) = delete;
  DiskFlushes& operator=(const DiskFlushes&) = delete;

  double longest_ms() const { return longest_ms_; }

 private:
  explicit DiskFlushes(UniqueFd file);
  void Run();

  UniqueFd file_;
  std::atomic<bool> stopping_ = false;
  std::atomic<double> longest_ms_ = 0;
  std::thread thread_;
};

}  // namespace loopfleet::bench
