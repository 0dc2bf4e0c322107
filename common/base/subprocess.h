#pragma once
// Subprocess: a child process with one owner, that ends when its owner goes: orderly by End(), by
// the destructor, or, if the owner is killed, by the kernel (PR_SET_PDEATHSIG). Start it from a
// thread that lives as long as the process: the kernel takes that thread's end for the parent's.

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
  int code = 0;    // of exit(); 128 + signal if one ended it, as shells say it
  int signal = 0;  // 0: it exited by itself
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};
std::string ToString(
    const ExitStatus& status);  // "exited with code 3", "was ended by signal 9 (Killed)"

class Subprocess {
 public:
  enum class Group {
    kInherit,  // signals of the terminal reach it
    kOwn,      // they do not
  };
  struct Options {
    std::vector<std::string> argv;  // argv[0] is looked up in PATH if it has no slash
    std::vector<std::pair<std::string, std::string>> set_environment;
    std::vector<std::string> clear_environment_prefixes;  // of variables not to be handed on
    Group group = Group::kInherit;
    int stdin_fd = -1;  // -1: the parent's
    int stdout_fd = -1;
    int stderr_fd = -1;
  };

  // kNotFound: there is no such program; kSystem: it cannot be started.
  static Result<Subprocess> Start(const Options& options);

  Subprocess() = default;  // none; the calls below need one
  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();  // kills it if it still runs

  pid_t pid() const { return pid_; }
  // Empty while it runs. Does not wait.
  std::optional<ExitStatus> Poll();
  std::optional<ExitStatus> WaitFor(Nanos limit);
  void Signal(int signal);  // nothing happens if it has ended
  // SIGTERM, and SIGKILL if it has not ended after `grace`.
  ExitStatus End(Nanos grace);

 private:
  explicit Subprocess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

// A pipe whose ends are not handed on to children by themselves.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Result<Pipe> OpenPipe();

// A file without a name that holds `content`, to be read from its start: what a child is to read at
// once, or may write any amount to without waiting for a reader.
Result<UniqueFd> MemoryFile(std::string_view content);

}  // namespace loopfleet
