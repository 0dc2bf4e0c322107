#include "worker/sandbox/syscall_filter.h"

#include <fmt/format.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "common/base/check.h"
#include "worker/sandbox/last_words.h"

namespace loopfleet::worker {
namespace {

// ---- crash reports ------------------------------------------------------------------------------

// Handlers need a stack of their own, as a kernel may have used up its stack.
constexpr std::size_t kSignalStackBytes = std::size_t{64} << 10;
// A process that cannot map this much more is at its memory limit.
constexpr std::size_t kProbeBytes = std::size_t{32} << 20;

int report_fd = -1;
bool reports_crashes = false;
bool may_fork = false;

// The functions below run in a signal handler, perhaps in a process whose memory is damaged, so
// they make system calls only.

// Sends what `encode` writes, in the framing of Channel::Send.
void SendLastWord(void (*encode)(std::int32_t, char*), std::int32_t number) {
  char bytes[sizeof(std::uint64_t) + kLastWordBytes];
  const std::uint64_t length = kLastWordBytes;
  std::memcpy(bytes, &length, sizeof length);
  encode(number, bytes + sizeof length);
  iovec part{bytes, sizeof bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ::sendmsg(report_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Unused in builds with sanitizers, which have neither filter nor handlers.
[[noreturn, maybe_unused]] void ReportForbiddenCall(int, siginfo_t* info, void*) {
  // The filter was made before the fork, so it allows no process but the first to signal itself.
  if (may_fork) ::_exit(info->si_syscall == SYS_tgkill ? kExitAborted : kExitForbiddenCall);
  SendLastWord(EncodeForbiddenCall, info->si_syscall);
  ::_exit(kExitForbiddenCall);
}

[[maybe_unused]] void HandleOutOfMemory(int signal, siginfo_t* info, void*) {
  if (::mmap(nullptr, kProbeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
      MAP_FAILED) {
    ::_exit(kExitOutOfMemory);
  }
  if (reports_crashes) SendLastWord(EncodeCrashed, signal);
  // SA_RESETHAND has removed the handler. A fault happens again and ends the process; a signal that
  // was sent has to be raised again.
  if (info->si_code <= 0) ::raise(signal);
}

Status HandleCrashes(ChildRole role, int channel_fd) {
  report_fd = channel_fd;
  reports_crashes = RunsKernels(role);
  may_fork = MayFork(role);
#if !defined(__SANITIZE_ADDRESS__)
  // Each thread that may run kernels needs such a stack; this one is the main thread's.
  stack_t stack{};
  stack.ss_sp = ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kSignalStackBytes;
  if (stack.ss_sp == MAP_FAILED || ::sigaltstack(&stack, nullptr) != 0) {
    return Fail(ErrorKind::kSystem, fmt::format("sigaltstack: {}", std::strerror(errno)));
  }
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = ReportForbiddenCall;
  ::sigaction(SIGSYS, &action, nullptr);
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  action.sa_sigaction = HandleOutOfMemory;
  for (const int crash : {SIGSEGV, SIGBUS, SIGABRT}) ::sigaction(crash, &action, nullptr);
  if (reports_crashes) {
    for (const int crash : {SIGILL, SIGFPE, SIGTRAP}) ::sigaction(crash, &action, nullptr);
  }
#endif
  return {};
}

// ---- the filter ---------------------------------------------------------------------------------

using Filter = std::unique_ptr<void, decltype(&::seccomp_release)>;

// Adds rules; keeps the first error.
class Rules {
 public:
  explicit Rules(void* filter) : filter_(filter) {}

  void Allow(std::initializer_list<int> calls) {
    for (const int call : calls) Keep(::seccomp_rule_add(filter_, SCMP_ACT_ALLOW, call, 0));
  }
  void AllowIf(int call, std::initializer_list<scmp_arg_cmp> conditions) {
    Keep(::seccomp_rule_add_array(filter_, SCMP_ACT_ALLOW, call,
                                  static_cast<unsigned>(conditions.size()), conditions.begin()));
  }
  int error() const { return error_; }

 private:
  void Keep(int result) {
    if (result < 0 && error_ == 0) error_ = -result;
  }
  void* filter_;
  int error_ = 0;
};

void AddRules(ChildRole role, int channel_fd, Rules& rules) {
  const auto fd = static_cast<scmp_datum_t>(channel_fd);
  const auto self = static_cast<scmp_datum_t>(::getpid());
  // The channel. Descriptors received with a message may be closed, the channel itself may not.
  rules.AllowIf(SCMP_SYS(recvmsg), {SCMP_A0(SCMP_CMP_EQ, fd)});
  rules.AllowIf(SCMP_SYS(sendmsg), {SCMP_A0(SCMP_CMP_EQ, fd)});
  rules.AllowIf(SCMP_SYS(close), {SCMP_A0(SCMP_CMP_GT, fd)});
  rules.Allow({SCMP_SYS(poll), SCMP_SYS(ppoll)});
  // Memory, but never executable memory.
  const scmp_datum_t executable = PROT_EXEC;
  rules.AllowIf(SCMP_SYS(mmap), {SCMP_A2(SCMP_CMP_MASKED_EQ, executable, 0)});
  rules.AllowIf(SCMP_SYS(mprotect), {SCMP_A2(SCMP_CMP_MASKED_EQ, executable, 0)});
  rules.Allow({SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk)});
  // The clock, where reading it takes a system call, and the limit on processor time.
  rules.Allow({SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(getrusage)});
  rules.AllowIf(SCMP_SYS(prlimit64), {SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A1(SCMP_CMP_EQ, RLIMIT_CPU)});
  // Synchronisation of threads that exist already.
  rules.Allow({SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(getcpu), SCMP_SYS(gettid),
               SCMP_SYS(getpid)});
  // Exit, also by abort().
  rules.Allow({SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn),
               SCMP_SYS(rt_sigprocmask), SCMP_SYS(restart_syscall)});
  // Signals to itself, but not those by which the daemon knows that the system ended a child
  // (SIGKILL, SIGXCPU, SIGSYS).
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) {
    rules.AllowIf(SCMP_SYS(tgkill), {SCMP_A0(SCMP_CMP_EQ, self),
                                     SCMP_A2(SCMP_CMP_EQ, static_cast<scmp_datum_t>(signal))});
  }
  rules.AllowIf(SCMP_SYS(write), {SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO)});
  if (!RunsKernels(role)) {
    rules.Allow({SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(uname)});
  }
  if (role == ChildRole::kProfiler) {
    // The timer whose signal samples the kernel (worker/timing/code_sampler.h).
    rules.AllowIf(SCMP_SYS(setitimer), {SCMP_A0(SCMP_CMP_EQ, ITIMER_REAL)});
  }
  if (MayFork(role)) {
    // fork() as the C library does it, with no flag that makes a thread or a namespace.
    constexpr scmp_datum_t kFork = CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD;
    rules.AllowIf(SCMP_SYS(clone), {SCMP_A0(SCMP_CMP_EQ, kFork)});
    rules.Allow({SCMP_SYS(set_robust_list), SCMP_SYS(wait4), SCMP_SYS(getppid)});
    rules.AllowIf(SCMP_SYS(prctl),
                  {SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG), SCMP_A1(SCMP_CMP_EQ, SIGKILL)});
    rules.Allow({SCMP_SYS(setitimer)});
    // A fork may move on to another channel, which comes by the first one.
    rules.AllowIf(SCMP_SYS(dup3), {SCMP_A1(SCMP_CMP_EQ, fd)});
    // What LLVM wrote to stderr, a file in memory, is read when a fork has crashed.
    for (const int call : {SCMP_SYS(pread64), SCMP_SYS(ftruncate), SCMP_SYS(lseek), SCMP_SYS(fstat),
                           SCMP_SYS(newfstatat)}) {
      rules.AllowIf(call, {SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO)});
    }
  }
}

Status Install(ChildRole role, int channel_fd) {
  const auto refused = [](const char* what, int error) {
    return Fail(ErrorKind::kSystem,
                fmt::format("system call filter: {}: {}", what, std::strerror(error)));
  };
  const Filter filter(::seccomp_init(SCMP_ACT_TRAP), &::seccomp_release);
  if (!filter) return refused("seccomp_init", ENOMEM);
  int error = 0;
  const auto set = [&](scmp_filter_attr attribute, std::uint32_t value) {
    const int result = ::seccomp_attr_set(filter.get(), attribute, value);
    if (result < 0 && error == 0) error = -result;
  };
  set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);  // 32-bit calls have other numbers
  set(SCMP_FLTATR_CTL_TSYNC, 1);
  // Without this, old systems slow down the loads of every process that has a filter.
  set(SCMP_FLTATR_CTL_SSB, 1);
  set(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // binary search instead of one comparison after the other
  if (error != 0) return refused("seccomp_attr_set", error);
  Rules rules(filter.get());
  AddRules(role, channel_fd, rules);
  if (rules.error() != 0) return refused("seccomp_rule_add", rules.error());
  const int loaded = ::seccomp_load(filter.get());
  if (loaded < 0) return refused("seccomp_load", -loaded);
  return {};
}

// Runs in the probing process; exits with kExitForbiddenCall if the filter works.
[[noreturn, maybe_unused]] void TryFilter() {
  constexpr int kNoChannel = 1000;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      !SealProcess(ChildRole::kExecutor, Isolation::kSeccomp, kNoChannel)) {
    ::_exit(1);
  }
  ::socket(AF_UNIX, SOCK_STREAM, 0);
  ::_exit(1);
}

}  // namespace

std::string_view IsolationName(Isolation isolation) {
  switch (isolation) {
    case Isolation::kProcess: return "process+rlimits";
    case Isolation::kSeccomp: return "seccomp+rlimits";
  }
  LF_CHECK(false, "isolation {}", static_cast<int>(isolation));
}

Isolation ProbeIsolation() {
  if (kHasSanitizer) return Isolation::kProcess;
  const pid_t pid = ::fork();
  if (pid == 0) TryFilter();
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return Isolation::kProcess;
  const bool works = WIFEXITED(status) && WEXITSTATUS(status) == kExitForbiddenCall;
  return works ? Isolation::kSeccomp : Isolation::kProcess;
}

Status SealProcess(ChildRole role, Isolation isolation, int channel_fd) {
  LF_TRY_VOID(HandleCrashes(role, channel_fd));
  const rlimit none{0, 0};
  if (!MayFork(role) && ::setrlimit(RLIMIT_NPROC, &none) != 0) {
    return Fail(ErrorKind::kSystem, fmt::format("RLIMIT_NPROC: {}", std::strerror(errno)));
  }
  if (isolation == Isolation::kProcess) return {};
  return Install(role, channel_fd);
}

std::string SystemCallName(std::int32_t number) {
  char* const name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  if (name == nullptr) return fmt::format("number {}", number);
  std::string text(name);
  std::free(name);  // NOLINT: the library allocated it with malloc
  return text;
}

}  // namespace loopfleet::worker
