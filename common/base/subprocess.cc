#include "common/base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

#include "common/base/check.h"

extern char** environ;

namespace loopfleet {
namespace {

constexpr Nanos kPollPause = std::chrono::milliseconds(2);

std::vector<std::string> EnvironmentOf(const Subprocess::Options& options) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool cleared =
        std::ranges::any_of(options.clear_environment_prefixes,
                            [&](const std::string& prefix) { return name.starts_with(prefix); });
    const bool replaced = std::ranges::any_of(options.set_environment,
                                              [&](const auto& pair) { return pair.first == name; });
    if (!cleared && !replaced) environment.emplace_back(text);
  }
  for (const auto& [name, value] : options.set_environment)
    environment.push_back(name + "=" + value);
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Turns the forked child into the program. Only async-signal-safe calls: other threads of the
// parent may have held locks at the fork.
[[noreturn]] void BecomeProgram(const Subprocess::Options& options, char* const* argv,
                                char* const* environment, pid_t parent, int error_fd) {
  const auto fail = [&] {
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(error_fd, &error, sizeof error);
    ::_exit(127);
  };
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail();
  if (::getppid() != parent) ::_exit(127);  // the parent ended before prctl
  if (options.group == Subprocess::Group::kOwn && ::setpgid(0, 0) != 0) fail();
  const int fds[] = {options.stdin_fd, options.stdout_fd, options.stderr_fd};
  for (int target = 0; target < 3; ++target) {
    if (fds[target] >= 0 && ::dup2(fds[target], target) < 0) fail();
  }
  const std::string& folder = options.working_directory;
  if (!folder.empty() && ::chdir(folder.c_str()) != 0) fail();
  // The program starts with no signal blocked or ignored.
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}) {
    ::signal(signal, SIG_DFL);
  }
  environ = const_cast<char**>(environment);  // so that the program is looked up in its own PATH
  ::execvp(argv[0], argv);
  fail();
  ::_exit(127);
}

ExitStatus FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    return ExitStatus{.code = 128 + WTERMSIG(status), .signal = WTERMSIG(status)};
  }
  return ExitStatus{.code = WEXITSTATUS(status)};
}

}  // namespace

std::string ToString(const ExitStatus& status) {
  if (status.signal != 0) {
    return fmt::format("was ended by signal {} ({})", status.signal, ::strsignal(status.signal));
  }
  return fmt::format("exited with code {}", status.code);
}

Result<Pipe> OpenPipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    return Fail(ErrorKind::kSystem, fmt::format("cannot open a pipe: {}", std::strerror(errno)));
  }
  return Pipe{.read = UniqueFd(fds[0]), .write = UniqueFd(fds[1])};
}

Result<UniqueFd> MemoryFile(std::string_view content) {
  UniqueFd file(::memfd_create("loopfleet", MFD_CLOEXEC));
  if (!file ||
      ::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return Fail(ErrorKind::kSystem, fmt::format("no file in memory: {}", std::strerror(errno)));
  }
  return file;
}

Result<Subprocess> Subprocess::Start(const Options& options) {
  LF_CHECK(!options.argv.empty(), "a program needs a name");
  LF_TRY(Pipe failure, OpenPipe());
  std::vector<std::string> arguments = options.argv;
  std::vector<std::string> environment = EnvironmentOf(options);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return Fail(ErrorKind::kSystem,
                fmt::format("cannot start '{}': {}", options.argv[0], std::strerror(errno)));
  }
  if (pid == 0) BecomeProgram(options, argv.data(), envp.data(), parent, failure.write.get());
  Subprocess process(pid);
  failure.write.Reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.read.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    return Fail(error == ENOENT ? ErrorKind::kNotFound : ErrorKind::kSystem,
                fmt::format("cannot start '{}': {}", options.argv[0], std::strerror(error)));
  }
  return process;
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(std::exchange(other.status_, std::nullopt)) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this != &other) {
    if (pid_ > 0) End(Nanos{0});
    pid_ = std::exchange(other.pid_, -1);
    status_ = std::exchange(other.status_, std::nullopt);
  }
  return *this;
}

Subprocess::~Subprocess() {
  if (pid_ > 0) End(Nanos{0});
}

std::optional<ExitStatus> Subprocess::Poll() {
  if (status_) return status_;
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG);
  if (got == pid_) status_ = FromWaitStatus(status);
  // The child was reaped elsewhere, so its exit code is unknown.
  if (got < 0 && errno == ECHILD) status_ = ExitStatus{.code = 1};
  return status_;
}

std::optional<ExitStatus> Subprocess::WaitFor(Nanos limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!Poll() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPollPause);
  return status_;
}

void Subprocess::Signal(int signal) {
  if (!Poll()) ::kill(pid_, signal);
}

ExitStatus Subprocess::End(Nanos grace) {
  if (grace > Nanos{0}) {
    Signal(SIGTERM);
    if (const auto ended = WaitFor(grace)) return *ended;
  }
  Signal(SIGKILL);
  while (!Poll()) std::this_thread::sleep_for(kPollPause);  // SIGKILL cannot be ignored
  return *status_;
}

// Within single quotes only a single quote is special.
std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace loopfleet
