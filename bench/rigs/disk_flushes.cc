#include "bench/rigs/disk_flushes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::bench {

Result<std::unique_ptr<DiskFlushes>> DiskFlushes::Start(const std::filesystem::path& beside) {
  const auto path = beside.parent_path() / "flushes";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return Fail(ErrorKind::kSystem, "cannot make " + path.native());
  return std::unique_ptr<DiskFlushes>(new DiskFlushes(std::move(file)));
}

DiskFlushes::DiskFlushes(UniqueFd file) : file_(std::move(file)), thread_([this] { Run(); }) {}

DiskFlushes::~DiskFlushes() {
  stopping_ = true;
  thread_.join();
}

void DiskFlushes::Run() {
  using SteadyClock = std::chrono::steady_clock;
  std::array<char, 4096> page{};
  while (!stopping_) {
    ++page[0];  // each time other bytes
    const auto start = SteadyClock::now();
    LF_CHECK(
        ::pwrite(file_.get(), page.data(), page.size(), 0) == static_cast<ssize_t>(page.size()) &&
            ::fdatasync(file_.get()) == 0,
        "the disk fails");
    const std::chrono::duration<double, std::milli> took = SteadyClock::now() - start;
    longest_ms_ = std::max(longest_ms_.load(), took.count());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace loopfleet::bench
