#pragma once
// LocalCluster: a coordinator and its workers as child processes of this one, reachable over ipc://
// sockets in a private directory. The destructor ends them all. If this process is killed, the
// kernel ends them and the directory's guardian cleans up (subprocess.h, scratch_dir.h). Belongs to
// the main thread; start it before other threads.

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/scratch_dir.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"

namespace loopfleet::client {

enum class LocalLogs {
  kFiles,   // in the private directory; shown when a daemon fails
  kStderr,  // not captured
};

struct LocalClusterOptions {
  std::filesystem::path programs;  // the directory of the daemons' executables
  std::string worker_program = "loopfleet-worker";
  std::vector<std::string> worker_arguments;  // extra arguments
  int workers = 1;
  std::vector<std::string> coordinator_arguments;  // likewise
  std::optional<std::filesystem::path> database;   // none: a private one, removed with the cluster
  LocalLogs logs = LocalLogs::kFiles;
  Nanos start_limit = std::chrono::seconds(30);  // for each daemon to be ready
  Nanos stop_limit = std::chrono::seconds(10);   // for each daemon to end cleanly
  const std::atomic<bool>* stop = nullptr;       // set by a thread or signal to abandon the start
};

// The directory of this executable, which also holds the daemons.
std::filesystem::path OwnDirectory();

class LocalCluster {
 public:
  // All daemons are ready and all workers registered when this returns.
  static Result<LocalCluster> Start(const LocalClusterOptions& options);
  LocalCluster(LocalCluster&&) noexcept = default;
  ~LocalCluster();

  const std::string& address() const { return address_; }
  const std::string& worker_address() const { return worker_address_; }
  const std::string& http() const { return http_; }
  const std::filesystem::path& database() const { return database_; }
  pid_t coordinator_pid() const { return daemons_.front().process.pid(); }

  // Environment variables for a process that uses the cluster: LOOPFLEET_ADDRESS and so on.
  std::vector<std::pair<std::string, std::string>> Environment() const;

  // A daemon that has ended, its exit status, and the last lines of its log.
  struct Death {
    std::string daemon;  // "worker 2 (pid 4711)"
    ExitStatus status;
    std::string last_lines;
    bool is_coordinator = false;
  };
  std::vector<Death> TakeExits();

  // Ends the workers first, so that their finished jobs are stored, then the coordinator.
  void Stop();

 private:
  struct Daemon {
    std::string name;
    Subprocess process;
    UniqueFd output;            // its standard output; kept open, or SIGPIPE would end the daemon
    std::filesystem::path log;  // empty: it logs to this process's standard error
    bool death_told = false;
  };

  LocalCluster(const LocalClusterOptions& options, ScratchDir scratch)
      : options_(options), scratch_(std::move(scratch)) {}
  // Starts a daemon; returns the JSON line that it prints when it is ready.
  Result<std::string> StartDaemon(const std::string& name, std::vector<std::string> argv);
  Status StartCoordinator();
  Status StartWorkers();
  Status AwaitWorkers();
  std::string LastLines(const Daemon& daemon) const;

  LocalClusterOptions options_;
  ScratchDir scratch_;
  std::vector<Daemon> daemons_;  // the coordinator first; destroyed before scratch_
  std::string address_;
  std::string worker_address_;
  std::string http_;
  std::filesystem::path database_;
};

}  // namespace loopfleet::client
