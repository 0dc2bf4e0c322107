#include "client/scratch_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/subprocess.h"

namespace loopfleet::client {
namespace {

constexpr std::string_view kNamePattern = "loopfleet-XXXXXX";
constexpr std::size_t kLongestFileName = 16;     // of a socket in it
constexpr std::size_t kLongestSocketPath = 107;  // sizeof(sockaddr_un::sun_path) without the NUL
// Dying processes may still create files while the directory is being removed.
constexpr int kRemovalTries = 50;
constexpr auto kRemovalPause = std::chrono::milliseconds(20);

std::string Parent() {
  const char* wanted = std::getenv("TMPDIR");
  const std::string parent = wanted != nullptr && *wanted == '/' ? wanted : "/tmp";
  const bool fits =
      parent.size() + kNamePattern.size() + kLongestFileName + 2 <= kLongestSocketPath;
  return fits ? parent : "/tmp";
}

[[noreturn]] void Guard(const std::filesystem::path& path, int life_fd) {
  ::setsid();  // signals to the owner's group or terminal do not reach it
  ::prctl(PR_SET_NAME, "loopfleet-tidy");
  // Close the owner's files: another process may wait for the end of its output.
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  ::open("/dev/null", O_RDWR);
  [[maybe_unused]] const int out = ::dup(0);
  [[maybe_unused]] const int err = ::dup(0);
  for (int fd = 3; fd < 1024; ++fd) {
    if (fd != life_fd) ::close(fd);
  }
  char byte = 0;
  while (::read(life_fd, &byte, 1) < 0 && errno == EINTR) {
  }
  for (int i = 0; i < kRemovalTries; ++i) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (!std::filesystem::exists(path, error)) break;
    std::this_thread::sleep_for(kRemovalPause);
  }
  ::_exit(0);
}

}  // namespace

Result<ScratchDir> ScratchDir::Create() { return CreateIn(Parent()); }

Result<ScratchDir> ScratchDir::CreateIn(const std::filesystem::path& parent) {
  LF_TRY(Pipe pipe, OpenPipe());
  std::string name = fmt::format("{}/{}", parent.native(), kNamePattern);
  if (::mkdtemp(name.data()) == nullptr) {
    return Fail(ErrorKind::kSystem, fmt::format("cannot make a directory in {}: {}",
                                                parent.native(), std::strerror(errno)));
  }
  ScratchDir scratch;
  scratch.path_ = name;
  const pid_t guardian = ::fork();
  if (guardian < 0) {
    std::filesystem::remove(scratch.path_);
    return Fail(ErrorKind::kSystem, fmt::format("cannot fork: {}", std::strerror(errno)));
  }
  if (guardian == 0) Guard(scratch.path_, pipe.read.get());
  scratch.cleaner_ = guardian;
  scratch.life_ = std::move(pipe.write);
  return scratch;
}

ScratchDir::ScratchDir(ScratchDir&& other) noexcept
    : path_(std::move(other.path_)),
      cleaner_(std::exchange(other.cleaner_, -1)),
      life_(std::move(other.life_)) {}

ScratchDir::~ScratchDir() {
  if (cleaner_ < 0) return;
  life_.Reset();
  while (::waitpid(cleaner_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace loopfleet::client
