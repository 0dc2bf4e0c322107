#pragma once
// CompileService: this process's handle on `loopfleet-worker serve`, which compiles and verifies
// kernels for it. Started at the first request; started again once if it ended. A forked
// child starts its own. One thread at a time.

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/base/subprocess.h"
#include "kernel/channel.h"
#include "kernel/serve_message.h"

namespace loopfleet {

class CompileService {
 public:
  struct Options {
    std::string program = "loopfleet-worker";  // a path, or a name to look up in PATH
    std::string memory;                        // file of what was found right; "": none
    std::uint32_t threads = 1;                 // the most that verified kernels may use
  };
  explicit CompileService(Options options) : options_(std::move(options)) {}
  CompileService(const CompileService&) = delete;
  CompileService& operator=(const CompileService&) = delete;

  // Code linked for this process. Failures are those of jobs; WORKER_LOST: the service cannot be
  // started, or it ended twice.
  ServeReply Ask(const ServeRequest& request);
  // `memory`: the descriptor of a run's memory; -1: none.
  IsolatedRunReply Ask(const IsolatedRunRequest& request, int memory);
  // -1: not started.
  pid_t pid() const { return process_ ? process_->pid() : -1; }

 private:
  Status EnsureStarted();
  Result<std::string> AskTwice(const std::string& request, int memory);
  Result<std::string> TryAsk(const std::string& request, int memory);
  void Forget();

  const Options options_;
  pid_t owner_ = -1;  // the process that started it
  std::optional<Subprocess> process_;
  Channel channel_;
};

}  // namespace loopfleet
