#include "worker/sandbox/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/base/check.h"
#include "worker/sandbox/last_words.h"

namespace loopfleet::worker {
namespace {

constexpr int kChannelFd = 3;
constexpr uid_t kNobody = 65534;

std::unexpected<Error> Refused(const char* what) {
  return Fail(ErrorKind::kSystem, fmt::format("{}: {}", what, std::strerror(errno)));
}

Status CloseOtherDescriptors(ChildRole role, int channel_fd) {
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0) return Refused("open /dev/null");
  // The channel may sit where a standard stream belongs; move it away first.
  const int channel = ::fcntl(channel_fd, F_DUPFD, kChannelFd + 1);
  if (channel < 0) return Refused("F_DUPFD");
  if (::dup2(null, STDIN_FILENO) < 0 || ::dup2(null, STDOUT_FILENO) < 0) return Refused("dup2");
  if (RunsKernels(role) && ::dup2(null, STDERR_FILENO) < 0) return Refused("dup2");
  if (::dup2(channel, kChannelFd) < 0) return Refused("dup2");
  if (::close_range(kChannelFd + 1, ~0U, 0) != 0) return Refused("close_range");
  return {};
}

Status Lower(int resource, rlim_t value, const char* what) {
  const rlimit limit{value, value};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return Refused(what);
  return {};
}

#if !defined(__SANITIZE_ADDRESS__)  // its shadow memory alone is terabytes of address space
struct MemoryInUse {
  std::uint64_t address_space = 0;  // bytes
  std::uint64_t data = 0;           // bytes of private writable memory
};

Result<MemoryInUse> ReadMemoryInUse() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return Refused("open /proc/self/statm");
  unsigned long long pages = 0;
  unsigned long long data_pages = 0;
  const int count = std::fscanf(file, "%llu %*u %*u %*u %*u %llu", &pages, &data_pages);
  std::fclose(file);
  if (count != 2) return Fail(ErrorKind::kSystem, "/proc/self/statm cannot be read");
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return MemoryInUse{.address_space = pages * page_bytes, .data = data_pages * page_bytes};
}
#endif

Status LowerLimits(const ChildLimits& limits) {
#if !defined(__SANITIZE_ADDRESS__)
  LF_TRY(const MemoryInUse in_use, ReadMemoryInUse());
  LF_TRY_VOID(Lower(RLIMIT_AS, in_use.address_space + limits.address_space_bytes, "RLIMIT_AS"));
  LF_TRY_VOID(Lower(RLIMIT_DATA, in_use.data + limits.private_bytes, "RLIMIT_DATA"));
#endif
  LF_TRY_VOID(Lower(RLIMIT_CORE, 0, "RLIMIT_CORE"));
  LF_TRY_VOID(Lower(RLIMIT_FSIZE, limits.file_bytes, "RLIMIT_FSIZE"));
  LF_TRY_VOID(Lower(RLIMIT_NOFILE, limits.open_files, "RLIMIT_NOFILE"));
  return {};
}

// True for the root of a container that may not change users (EPERM), or of a user namespace
// without another user (EINVAL). Isolation promises nothing about the user, only about its rights.
bool CannotChangeUser() { return errno == EPERM || errno == EINVAL; }

// Root's rights are its capabilities; without them it is an ordinary user.
Status DropCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capset, &header, none) != 0) return Refused("capset");
  return {};
}

Status DropPrivileges() {
  ::clearenv();
  if (::chdir("/") != 0) return Refused("chdir /");
  if (::geteuid() == 0) {
    if (::setgroups(0, nullptr) != 0 && !CannotChangeUser()) return Refused("setgroups");
    if (::setresgid(kNobody, kNobody, kNobody) != 0 && !CannotChangeUser())
      return Refused("setresgid");
    if (::setresuid(kNobody, kNobody, kNobody) != 0 && !CannotChangeUser())
      return Refused("setresuid");
  }
  return DropCapabilities();
}

}  // namespace

std::string_view ChildRoleName(ChildRole role) {
  switch (role) {
    case ChildRole::kCompiler: return "compiler";
    case ChildRole::kReference: return "reference";
    case ChildRole::kVerifier: return "verifier";
    case ChildRole::kExecutor: return "executor";
    case ChildRole::kDevice: return "device";
    case ChildRole::kPasses: return "passes";
    case ChildRole::kProfiler: return "profiler";
  }
  LF_CHECK(false, "role {}", static_cast<int>(role));
}

Result<int> Confine(ChildRole role, const ChildLimits& limits, int channel_fd, int parent_pid) {
  LF_TRY_VOID(CloseOtherDescriptors(role, channel_fd));
  ::prctl(PR_SET_NAME, fmt::format("lf-{}", ChildRoleName(role)).c_str());
  // Its forks are found by their group, which they may not leave (syscall_filter.cc).
  if (MayFork(role) && ::setpgid(0, 0) != 0) return Refused("setpgid");
  if (limits.cpu_core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<std::size_t>(*limits.cpu_core), &cores);
    if (::sched_setaffinity(0, sizeof cores, &cores) != 0) return Refused("sched_setaffinity");
  }
  LF_TRY_VOID(LowerLimits(limits));
  if (LosesPrivileges(role)) LF_TRY_VOID(DropPrivileges());
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Refused("PR_SET_NO_NEW_PRIVS");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return Refused("PR_SET_DUMPABLE");
  // Last, as a change of user clears it. The parent may have ended before it was set.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Refused("PR_SET_PDEATHSIG");
  if (::getppid() != parent_pid) return Fail(ErrorKind::kClosed, "the parent is gone");
  return kChannelFd;
}

Status ForbidWriting() { return Lower(RLIMIT_FSIZE, 0, "RLIMIT_FSIZE"); }

void LimitProcessorTime(const ProcessorTime& time) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  rlimit limit{};
  ::getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur =
      static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 2 + time.seconds();
  ::setrlimit(RLIMIT_CPU, &limit);
}

void ProcessorTimeLimit::Renew(const ProcessorTime& time, Instant now) {
  constexpr std::chrono::seconds kHolds(1);
  if (time == granted_ && now - granted_at_ < kHolds) return;
  LimitProcessorTime({.wall_seconds = time.wall_seconds + kHolds.count(), .threads = time.threads});
  granted_ = time;
  granted_at_ = now;
}

void ExitOutOfMemory() { std::_Exit(kExitOutOfMemory); }

}  // namespace loopfleet::worker
