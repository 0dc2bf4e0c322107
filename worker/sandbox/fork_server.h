#pragma once
// ForkServer: a small single-threaded process, forked from the daemon before the daemon has
// threads, sockets or keys. It forks the children that compile and run job code and hands their
// channels back. Of each kind that it was asked for it keeps a spare one, so that a child that
// ended is replaced at once. It outlives every child and ends with the daemon.
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
#include "worker/sandbox/channel.h"
#include "worker/sandbox/confinement.h"

namespace loopfleet::worker {

// A child as the daemon sees it. Killed, if it still runs, when the object goes.
class ChildProcess {
 public:
  ChildProcess(pid_t pid, Channel channel, UniqueFd pidfd, UniqueFd status);
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  Channel& channel() { return channel_; }
  void Kill();
  // The status that waitpid gave to the fork server. kTimeout: it still runs. kClosed: the fork
  // server ended.
  Result<int> WaitUntilEnded(Instant deadline);

 private:
  pid_t pid_;
  Channel channel_;
  UniqueFd pidfd_;
  UniqueFd status_;
};

// What a child does: runs once it is confined, ends when its channel is closed, and returns the
// child's exit code.
struct ChildProgram {
  std::function<int(Channel&)> run;
  ChildLimits limits;
};
struct ChildPrograms {
  std::function<void()> prepare;  // runs once, in the fork server
  std::map<ChildRole, ChildProgram> by_role;
};

class ForkServer {
 public:
  // The calling process must have one thread. kSystem: the process could not be made ready.
  static Result<std::unique_ptr<ForkServer>> Start(const ChildPrograms& programs);
  ~ForkServer();  // ends the fork server and with it every child
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  // From any thread. The role is one of the programs'. kClosed: the fork server is gone, and the
  // daemon can do no more work. kTimeout: it did not answer in time; its late answer is nobody's.
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
