#pragma once
// SignalWatcher: handles SIGTERM, SIGINT, SIGHUP and SIGUSR1 on a thread of its own. The first
// signal asks the process to drain; the second ends it at once, with exit code 128 + signal.
// SIGUSR1 only asks: it ends no process that drains already. A process started with SIGHUP ignored
// (nohup) keeps ignoring it. Create it before any other thread, so that the signals are blocked in
// all other threads.

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet {

class SignalWatcher {
 public:
  static Result<std::unique_ptr<SignalWatcher>> Start();
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  // Before Watch: whether a signal is pending.
  bool IsPending() const;
  // Calls `on_first` on the watcher's thread at the first signal, at once if one is pending. Called
  // once.
  void Watch(std::function<void()> on_first);
  // Drops `on_first`: the next signal but SIGUSR1 ends the process.
  void Forget();

 private:
  SignalWatcher(UniqueFd signals, UniqueFd stop);

  void HandleSignal(int signal);

  const UniqueFd signals_;
  const UniqueFd stop_;
  std::mutex mutex_;
  std::function<void()> on_first_;  // guarded by mutex_; empty once called or dropped
  std::thread thread_;
};

}  // namespace loopfleet
