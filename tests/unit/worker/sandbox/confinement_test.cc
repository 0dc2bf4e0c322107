#include "worker/sandbox/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

namespace loopfleet::worker {
namespace {

// Eight threads that are busy for ten seconds use eighty seconds and stay within their limit.
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

// Bounds the bytes that a child may write to a file, memory files included.
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

bool Write(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY);
  return file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Root of a namespace with one user, as after `unshare -r`, has no other user to become.
TEST(ChildConfinementTest, RootThatHasNoOtherUserLosesItsRightsAllTheSame) {
  constexpr int kNoNamespaces = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t parent = ::getppid();
    const std::string user = "0 " + std::to_string(::geteuid()) + " 1";
    const std::string group = "0 " + std::to_string(::getegid()) + " 1";
    if (::unshare(CLONE_NEWUSER) != 0 || !Write("/proc/self/setgroups", "deny") ||
        !Write("/proc/self/uid_map", user) || !Write("/proc/self/gid_map", group)) {
      ::_exit(kNoNamespaces);
    }
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3]{};
    if (::syscall(SYS_capget, &header, has) != 0 || has[0].effective == 0) ::_exit(1);
    if (!Confine(ChildRole::kVerifier, {}, ::open("/dev/null", O_RDWR), parent)) ::_exit(2);
    if (::syscall(SYS_capget, &header, has) != 0) ::_exit(3);
    for (const __user_cap_data_struct& word : has) {
      if (word.effective != 0 || word.permitted != 0 || word.inheritable != 0) ::_exit(4);
    }
    ::_exit(0);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNoNamespaces) GTEST_SKIP() << "this host permits no user namespaces";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Kernels and bitcode come from outside.
TEST(ChildConfinementTest, WhatComesFromOutsideIsRunWithoutRightsEnvironmentOrFolder) {
  for (const ChildRole role : {ChildRole::kExecutor, ChildRole::kPasses}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const pid_t parent = ::getppid();
      ::setenv("LOOPFLEET_KEYS", "/keys", 1);
      if (!Confine(role, {}, ::open("/dev/null", O_RDWR), parent)) ::_exit(1);
      if (::getenv("LOOPFLEET_KEYS") != nullptr) ::_exit(2);
      char folder[8] = {};
      if (::getcwd(folder, sizeof folder) == nullptr || folder[1] != '\0') ::_exit(3);
      __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
      __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3]{};
      if (::syscall(SYS_capget, &header, has) != 0) ::_exit(4);
      ::_exit(has[0].effective == 0 && has[0].permitted == 0 ? 0 : 5);
    }
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0) << ChildRoleName(role);
  }
}

rlim_t LimitNow() {
  rlimit limit{};
  ::getrlimit(RLIMIT_CPU, &limit);
  return limit.rlim_cur;
}

// A grant holds for a second and includes the use of that second. A different grant, smaller ones
// included, takes effect at once.
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
