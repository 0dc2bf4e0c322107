#pragma once
// Subprocess: a child process with one owner, which it never outlives: End() ends it gently, the
// destructor kills it, and if the owner is killed, the kernel does (PR_SET_PDEATHSIG). Start it
// from a thread that lives as long as the process: the kernel signals the child when that thread
// ends. Used by one thread at a time.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet {

// How a process ended.
struct ExitStatus {
  int code = 0;    // exit code; 128 + signal if a signal ended it, as in shells
  int signal = 0;  // 0: it exited by itself
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};
std::string ToString(
    const ExitStatus& status);  // "exited with code 3", "was ended by signal 9 (Killed)"

class Subprocess {
 public:
  enum class Group {
    kInherit,  // signals from the terminal reach it
    kOwn,      // they do not
  };
  struct Options {
    std::vector<std::string> argv;  // argv[0] is looked up in PATH if it has no slash
    std::vector<std::pair<std::string, std::string>> set_environment;
    std::vector<std::string> clear_environment_prefixes;  // variables not passed on
    std::string working_directory;                        // empty: the parent's
    Group group = Group::kInherit;
    // The child's standard streams; -1: the parent's.
    int stdin_fd = -1;
    int stdout_fd = -1;
    int stderr_fd = -1;
  };

  // kNotFound: the program does not exist; kSystem: it cannot be started.
  static Result<Subprocess> Start(const Options& options);

  Subprocess() = default;  // no process: the calls below are not allowed
  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();  // kills it if it still runs

  pid_t pid() const { return pid_; }
  // nullopt while it runs. Does not wait.
  std::optional<ExitStatus> Poll();
  std::optional<ExitStatus> WaitFor(Nanos limit);
  void Signal(int signal);  // no effect if it has ended
  // Sends SIGTERM, then SIGKILL if it has not ended after `grace`; `grace` 0: SIGKILL at once.
  ExitStatus End(Nanos grace);

 private:
  explicit Subprocess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

// A pipe whose ends are close-on-exec.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Result<Pipe> OpenPipe();

// An anonymous file in memory that holds `content`, positioned at its start. Input for a child, or
// an output of any size that needs no concurrent reader.
Result<UniqueFd> MemoryFile(std::string_view content);

// The text as one word of a shell's command line: 'it'\''s'.
std::string ShellQuoted(std::string_view text);

}  // namespace loopfleet
