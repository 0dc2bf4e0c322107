#include "storage/sqlite/writer_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

namespace loopfleet::storage {
namespace {

constexpr std::chrono::milliseconds kPollEvery{20};

std::unexpected<Error> SystemError(const std::string& path, std::string_view what) {
  return Fail(errno == ENOSPC || errno == EDQUOT ? ErrorKind::kFull : ErrorKind::kSystem,
              fmt::format("cannot {} lock file {}: {}", what, path, std::strerror(errno)));
}

// The process id that the holder wrote; "unknown" until it has.
std::string ReadHolder(int file) {
  std::array<char, 20> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  std::string_view holder(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  holder = holder.substr(0, holder.find('\n'));
  return holder.empty() ? "unknown" : std::string(holder);
}

}  // namespace

Result<WriterLock> WriterLock::Take(const std::filesystem::path& database,
                                    std::chrono::milliseconds wait) {
  const std::string path = database.string() + ".lock";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return SystemError(path, "open");
  const auto give_up_at = std::chrono::steady_clock::now() + wait;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return SystemError(path, "lock");
    if (std::chrono::steady_clock::now() >= give_up_at) {
      return Fail(ErrorKind::kUnavailable,
                  fmt::format("database {} is in use by process {}: stop that coordinator, or name "
                              "another file",
                              database.string(), ReadHolder(file.get())));
    }
    std::this_thread::sleep_for(kPollEvery);
  }
  const std::string holder = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), holder.data(), holder.size(), 0) !=
                                             static_cast<ssize_t>(holder.size())) {
    return SystemError(path, "write");
  }
  return WriterLock(std::move(file));
}

}  // namespace loopfleet::storage
