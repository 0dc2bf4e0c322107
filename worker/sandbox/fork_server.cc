#include "worker/sandbox/fork_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// glibc 2.36 declares these without C linkage.
extern "C" {
#include <sys/pidfd.h>
}

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "kernel/byte_codec.h"
#include "worker/sandbox/last_words.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kMaxControlBytes = 4096;
// Preparing opens a compiler backend, which takes milliseconds, and longer on a loaded machine.
constexpr std::chrono::seconds kPrepareTimeout{60};
constexpr std::chrono::seconds kEndTimeout{10};
constexpr int kDaemonEnded = SIGUSR1;

Instant In(Nanos duration) { return Instant(std::chrono::steady_clock::now()) + duration; }

void IgnoreTerminalSignals() {
  // They are meant for the daemon, which ends its children in its own order.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_IGN);
}

// The main loop of the fork server process.
class ForkServerLoop {
 public:
  ForkServerLoop(Channel channel, const ChildPrograms& programs, pid_t daemon)
      : channel_(std::move(channel)), programs_(programs), daemon_(daemon) {}

  [[noreturn]] void RunAndExit() { Exit(Run()); }

 private:
  struct Child {
    pid_t pid = 0;
    Channel channel;
    UniqueFd pidfd;
    UniqueFd status;
  };

  // Children get SIGKILL when this process ends, but their forks need not.
  [[noreturn]] void Exit(int code) {
    for (const auto& [pid, status_pipe] : status_pipes_) EndGroup(pid);
    std::_Exit(code);
  }

  int Run() {
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigaddset(&ended, kDaemonEnded);
    sigprocmask(SIG_BLOCK, &ended, nullptr);
    const UniqueFd signals(::signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals) return 1;
    if (programs_.prepare) programs_.prepare();
    if (!channel_.Send("ready", std::nullopt)) return 1;
    for (;;) {
      pollfd items[] = {{channel_.fd(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
      if (::poll(items, 2, -1) < 0 && errno != EINTR) return 1;
      if ((items[1].revents & POLLIN) != 0) {
        signalfd_siginfo ignored[8];
        while (::read(signals.get(), ignored, sizeof ignored) > 0) {
        }
        Reap();
        if (::getppid() != daemon_) return 0;
      }
      while (channel_.IsReadable()) {  // also requests read ahead, which poll does not show
        const Result<std::string> request = channel_.Receive(std::nullopt, kMaxControlBytes);
        if (!request) return 0;  // the daemon ended
        ByteReader reader(*request);
        const auto number = reader.Get<std::uint64_t>();
        ChildRole role{};
        reader.Enum(role, kLastChildRole);
        Spawn(number, role);
      }
    }
  }

  // A child that may fork leads a group (Confine), which its forks cannot leave. `pid` is not
  // reaped yet, so no other process or group can have that number.
  static void EndGroup(pid_t pid) { ::kill(-pid, SIGKILL); }

  void Reap() {
    for (siginfo_t ended{};
         ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid > 0;
         ended = {}) {
      const pid_t pid = ended.si_pid;
      EndGroup(pid);
      int status = 0;
      ::waitpid(pid, &status, 0);
      std::erase_if(spares_, [&](const auto& spare) { return spare.second.pid == pid; });
      const auto found = status_pipes_.find(pid);
      if (found == status_pipes_.end()) continue;
      if (::write(found->second.get(), &status, sizeof status) < 0 && errno != EPIPE) {
        // Nothing to do: closing the pipe tells the daemon that the child's end is unknown.
      }
      status_pipes_.erase(found);
    }
  }

  void Spawn(std::uint64_t number, ChildRole role) {
    ByteWriter reply;
    reply.Put(number);
    Result<Child> child = TakeSpare(role);
    if (child) {
      reply.Put(static_cast<std::int64_t>(child->pid));
      const int fds[] = {child->channel.fd(), child->pidfd.get(), child->status.get()};
      if (!channel_.Send(reply.Take(), std::nullopt, fds)) Exit(1);
    } else {
      reply.Put(static_cast<std::int64_t>(-1));
      reply.PutText(child.error().message);
      if (!channel_.Send(reply.Take(), std::nullopt)) Exit(1);
    }
    // If this fails, the next request fails too and reports why.
    if (Result<Child> spare = Make(role)) spares_.emplace(role, *std::move(spare));
  }

  Result<Child> TakeSpare(ChildRole role) {
    const auto spare = spares_.find(role);
    if (spare == spares_.end()) return Make(role);
    Child child = std::move(spare->second);
    spares_.erase(spare);
    return child;
  }

  Result<Child> Make(ChildRole role) {
    LF_CHECK(programs_.by_role.contains(role), "there is no program for a {}", ChildRoleName(role));
    const auto& prepare = programs_.by_role.at(role).prepare;
    if (prepared_.insert(role).second && prepare) prepare();
    LF_TRY(auto ends, Channel::MakePair());
    int pipe_ends[2];
    if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) {
      return Fail(ErrorKind::kSystem, fmt::format("pipe2: {}", std::strerror(errno)));
    }
    UniqueFd status_read(pipe_ends[0]);
    UniqueFd status_write(pipe_ends[1]);
    const pid_t fork_server = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return Fail(ErrorKind::kSystem, fmt::format("fork: {}", std::strerror(errno)));
    if (pid == 0) RunChild(role, std::move(ends.second), fork_server);
    UniqueFd pidfd(::pidfd_open(pid, 0));
    if (!pidfd) {
      ::kill(pid, SIGKILL);
      return Fail(ErrorKind::kSystem, fmt::format("pidfd_open: {}", std::strerror(errno)));
    }
    status_pipes_[pid] = std::move(status_write);
    return Child{.pid = pid,
                 .channel = std::move(ends.first),
                 .pidfd = std::move(pidfd),
                 .status = std::move(status_read)};
  }

  [[noreturn]] void RunChild(ChildRole role, Channel channel, pid_t fork_server) {
    // A crash has to show as its own signal, so remove any handlers (sanitizers install some).
    for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
      std::signal(crash, SIG_DFL);
    }
    std::signal(SIGUSR1, SIG_IGN);  // asks the daemon to drain; a sender may tell all processes
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const ChildProgram& program = programs_.by_role.at(role);
    const Result<int> fd = Confine(role, program.limits, channel.fd(), fork_server);
    // Confine has closed or reassigned the old descriptor numbers, so their owner must not close
    // them.
    channel.TakeFd().Release();
    if (!fd) {
      fmt::print(stderr, "loopfleet-worker: a {} child could not be confined: {}\n",
                 ChildRoleName(role), fd.error().message);
      std::_Exit(kExitNotConfined);
    }
    Channel own{UniqueFd(*fd)};
    std::_Exit(program.run(own));
  }

  Channel channel_;
  const ChildPrograms& programs_;
  const pid_t daemon_;
  std::map<pid_t, UniqueFd> status_pipes_;  // of children that are not reaped
  std::map<ChildRole, Child> spares_;
  std::set<ChildRole> prepared_;
};

}  // namespace

ChildProcess::ChildProcess(pid_t pid, Channel channel, UniqueFd pidfd, UniqueFd status)
    : pid_(pid),
      channel_(std::move(channel)),
      pidfd_(std::move(pidfd)),
      status_(std::move(status)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = other.pid_;
    channel_ = std::move(other.channel_);
    pidfd_ = std::move(other.pidfd_);
    status_ = std::move(other.status_);
    gives_way_ = other.gives_way_;
  }
  return *this;
}

ChildProcess::~ChildProcess() { Kill(); }

Result<std::string> ChildProcess::ReceiveReply(Instant deadline, std::size_t max_bytes) {
  constexpr int kLowPriority = 10;  // weight 110, where others have 1,024
  const Instant soon = Instant(std::chrono::steady_clock::now()) + kOwnShare;
  if (soon < deadline && !gives_way_ && !channel_.AwaitReadable(soon)) {
    gives_way_ = ::setpriority(PRIO_PROCESS, static_cast<id_t>(pid_), kLowPriority) == 0;
  }
  return channel_.Receive(deadline, max_bytes);
}

void ChildProcess::Kill() {
  if (pidfd_) ::pidfd_send_signal(pidfd_.get(), SIGKILL, nullptr, 0);
}

Nanos ChildProcess::processor_time() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + Nanos(used.tv_nsec);
}

Result<int> ChildProcess::WaitUntilEnded(Instant deadline) {
  for (;;) {
    int status = 0;
    const ssize_t count = ::read(status_.get(), &status, sizeof status);
    if (count == sizeof status) return status;
    if (count == 0) return Fail(ErrorKind::kClosed, "the fork server ended before its child");
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      return Fail(ErrorKind::kSystem, fmt::format("read: {}", std::strerror(errno)));
    }
    const Nanos left = deadline - Instant(std::chrono::steady_clock::now());
    if (left <= Nanos{0}) return Fail(ErrorKind::kTimeout, "the child still runs");
    const timespec wait{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    pollfd item{status_.get(), POLLIN, 0};
    ::ppoll(&item, 1, &wait, nullptr);
  }
}

ForkServer::ForkServer(pid_t pid, Channel channel, UniqueFd pidfd)
    : pid_(pid), pidfd_(std::move(pidfd)), channel_(std::move(channel)) {}

Result<std::unique_ptr<ForkServer>> ForkServer::Start(const ChildPrograms& programs) {
  LF_TRY(auto ends, Channel::MakePair());
  const pid_t daemon = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(ErrorKind::kSystem, fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) {
    ends.first.TakeFd().Reset();
    ::prctl(PR_SET_NAME, "lf-fork-server");
    ::prctl(PR_SET_PDEATHSIG, kDaemonEnded);
    if (::getppid() != daemon) std::_Exit(1);
    IgnoreTerminalSignals();
    ForkServerLoop(std::move(ends.second), programs, daemon).RunAndExit();
  }
  UniqueFd pidfd(::pidfd_open(pid, 0));
  if (!pidfd) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return Fail(ErrorKind::kSystem, fmt::format("pidfd_open: {}", std::strerror(errno)));
  }
  std::unique_ptr<ForkServer> fork_server(
      new ForkServer(pid, std::move(ends.first), std::move(pidfd)));
  ends.second.TakeFd().Reset();
  const Result<std::string> ready =
      fork_server->channel_.Receive(In(kPrepareTimeout), kMaxControlBytes);
  if (!ready) {
    return Fail(ErrorKind::kSystem,
                fmt::format("the fork server did not become ready: {}", ready.error().message));
  }
  return fork_server;
}

ForkServer::~ForkServer() {
  channel_.TakeFd().Reset();  // asks it to end
  pollfd item{pidfd_.get(), POLLIN, 0};
  const int ended =
      ::poll(&item, 1, static_cast<int>(std::chrono::milliseconds(kEndTimeout).count()));
  if (ended <= 0) ::pidfd_send_signal(pidfd_.get(), SIGKILL, nullptr, 0);
  ::waitpid(pid_, nullptr, 0);
}

Result<ChildProcess> ForkServer::Spawn(ChildRole role, Nanos timeout) {
  std::lock_guard lock(mutex_);
  const Instant deadline = In(timeout);
  ByteWriter request;
  request.Put(++last_request_);
  request.Put(role);
  LF_TRY_VOID(channel_.Send(request.Take(), deadline));
  for (;;) {
    LF_TRY(Channel::Message reply, channel_.ReceiveWithFds(kMaxControlBytes, deadline));
    ByteReader reader(reply.bytes);
    const auto number = reader.Get<std::uint64_t>();
    const auto pid = reader.Get<std::int64_t>();
    const bool is_ours = number == last_request_;
    if (pid < 0 && is_ours) {
      return Fail(ErrorKind::kSystem, fmt::format("no {} child could be started: {}",
                                                  ChildRoleName(role), reader.GetText()));
    }
    if (pid < 0) continue;
    LF_CHECK(reader.ok() && reply.fds.size() == 3, "the fork server answered with {} descriptors",
             reply.fds.size());
    ChildProcess child(static_cast<pid_t>(pid), Channel(std::move(reply.fds[0])),
                       std::move(reply.fds[1]), std::move(reply.fds[2]));
    if (is_ours) return child;
    // The late answer to an earlier request: its child is killed here.
  }
}

bool ForkServer::IsAlive() const {
  pollfd item{pidfd_.get(), POLLIN, 0};
  return ::poll(&item, 1, 0) == 0;  // a pidfd becomes readable when its process ends
}

}  // namespace loopfleet::worker
