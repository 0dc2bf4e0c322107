#pragma once
// ForkServer: a small single-threaded process, forked from the daemon before the daemon has
// threads, sockets or keys. It forks the children that compile and run job code and returns their
// channels. It keeps one spare child of each role requested so far, so that a child that ended is
// replaced at once. It outlives every child and ends with the daemon. When a child ends, so do the
// forks that it has made.
//
// For each child the daemon holds a channel, a pidfd (to kill exactly this process) and a pipe on
// which the fork server writes the child's wait status when it has ended.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "kernel/channel.h"
#include "worker/sandbox/confinement.h"

namespace loopfleet::worker {

// The daemon's handle on a child. The destructor kills the child if it still runs.
class ChildProcess {
 public:
  static constexpr std::chrono::milliseconds kOwnShare{50};

  ChildProcess(pid_t pid, Channel channel, UniqueFd pidfd, UniqueFd status);
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  Channel& channel() { return channel_; }
  void Kill();
  // Used so far, by all of its threads. Zero once it has ended.
  Nanos processor_time() const;
  // Receives a reply. A child that is busy for longer than kOwnShare gets a low priority, so that
  // short work keeps nine tenths of a core. Replace it afterwards: gives_way().
  Result<std::string> ReceiveReply(Instant deadline, std::size_t max_bytes);
  bool gives_way() const { return gives_way_; }
  // The status that waitpid gave the fork server. kTimeout: the child still runs. kClosed: the fork
  // server ended.
  Result<int> WaitUntilEnded(Instant deadline);

 private:
  pid_t pid_;
  Channel channel_;
  UniqueFd pidfd_;
  UniqueFd status_;
  bool gives_way_ = false;
};

// What a child does after it is confined. `run` ends when the channel is closed, and returns the
// child's exit code.
struct ChildProgram {
  std::function<int(Channel&)> run;
  ChildLimits limits;
  std::function<void()> prepare = {};  // runs once, in the fork server, before the first such child
};
struct ChildPrograms {
  std::function<void()> prepare;  // runs once, in the fork server, before it is ready
  std::map<ChildRole, ChildProgram> by_role;
};

class ForkServer {
 public:
  // The calling process must have one thread. kSystem: the fork server could not be started.
  static Result<std::unique_ptr<ForkServer>> Start(const ChildPrograms& programs);
  ~ForkServer();  // ends the fork server and with it every child
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  // Safe from any thread. `role` must be one of the programs'. kClosed: the fork server is gone,
  // and the daemon can do no more work. kTimeout: it did not answer in time; its late answer is
  // discarded. kSystem: no child could be started.
  Result<ChildProcess> Spawn(ChildRole role, Nanos timeout = kSpawnTimeout);
  bool IsAlive() const;
  pid_t pid() const { return pid_; }

 private:
  static constexpr std::chrono::seconds kSpawnTimeout{10};

  ForkServer(pid_t pid, Channel channel, UniqueFd pidfd);

  const pid_t pid_;
  const UniqueFd pidfd_;
  std::mutex mutex_;
  Channel channel_;                 // guarded by mutex_
  std::uint64_t last_request_ = 0;  // guarded by mutex_
};

}  // namespace loopfleet::worker
