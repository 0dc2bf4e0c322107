#pragma once
// SignalWatcher: SIGTERM, SIGINT and SIGHUP as calls on a thread of their own. The first asks to
// drain; the second ends the process at once, with exit code 128 + signal. A process that was
// started to ignore hangups (nohup) goes on ignoring them. Make it before any other thread, so that
// the signals stay blocked everywhere else.

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

  // Before Watch: a signal has come already, and waits for it.
  bool IsPending() const;
  // `on_first` is called on the watcher's thread, at once if a signal has come already. Once only.
  void Watch(std::function<void()> on_first);
  // `on_first` is not called from now on; the next signal ends the process.
  void Forget();

 private:
  SignalWatcher(UniqueFd signals, UniqueFd stop);

  void HandleSignal(int signal);

  const UniqueFd signals_;
  const UniqueFd stop_;
  std::mutex mutex_;
  std::function<void()> on_first_;  // guarded by mutex_; empty once it was called or forgotten
  std::thread thread_;
};

}  // namespace loopfleet
