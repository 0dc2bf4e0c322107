#include "worker/child_confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace loopfleet::worker {
namespace {

// Eight threads that are busy for ten seconds use eighty, and are within their limit.
TEST(ChildConfinementTest, ProcessorTimeIsOfAllThreads) {
  EXPECT_EQ((ProcessorTime{.wall_seconds = 10, .threads = 8}.seconds()), 80U);
  const pid_t child = ::fork();
  if (child == 0) {
    LimitProcessorTime({.wall_seconds = 10, .threads = 8});
    rlimit limit{};
    ::getrlimit(RLIMIT_CPU, &limit);
    ::_exit(limit.rlim_cur >= 80 && limit.rlim_cur < limit.rlim_max ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Of the bytes that a child may write into a file, also one in memory.
TEST(ChildConfinementTest, FilesAreBoundedAndThenForbidden) {
  constexpr std::uint64_t kBytes = 4096;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const pid_t parent = ::getppid();
    const int null = ::open("/dev/null", O_RDWR);
    if (!Confine(ChildRole::kDevice, {.file_bytes = kBytes}, null, parent)) ::_exit(1);
    const int file = ::memfd_create("file", 0);
    if (::ftruncate(file, kBytes) != 0) ::_exit(2);
    if (::ftruncate(file, kBytes + 1) == 0 || errno != EFBIG) ::_exit(3);
    if (!ForbidWriting()) ::_exit(4);
    const int other = ::memfd_create("other", 0);
    ::_exit(::write(other, "x", 1) == 1 ? 5 : 0);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0) << status;
}

rlim_t LimitNow() {
  rlimit limit{};
  ::getrlimit(RLIMIT_CPU, &limit);
  return limit.rlim_cur;
}

// What was granted holds for a second, and leaves that second's use on top; another grant is set at
// once, also a smaller one.
TEST(ChildConfinementTest, ProcessorTimeIsRenewedOnceASecond) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Instant start{std::chrono::seconds(1'000)};
    ProcessorTimeLimit granted;
    granted.Renew({.wall_seconds = 10}, start);
    if (LimitNow() < 11) ::_exit(1);
    const rlimit marked{5, RLIM_INFINITY};  // shows whether it is set again
    ::setrlimit(RLIMIT_CPU, &marked);
    granted.Renew({.wall_seconds = 10}, start + std::chrono::milliseconds(999));
    if (LimitNow() != 5) ::_exit(2);
    granted.Renew({.wall_seconds = 10}, start + std::chrono::milliseconds(1'000));
    if (LimitNow() < 11) ::_exit(3);
    granted.Renew({.wall_seconds = 2}, start + std::chrono::milliseconds(1'001));
    if (LimitNow() < 3 || LimitNow() > 9) ::_exit(4);
    granted.Renew({.wall_seconds = 2, .threads = 8}, start + std::chrono::milliseconds(1'002));
    if (LimitNow() < 24) ::_exit(5);
    ::_exit(0);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace loopfleet::worker
