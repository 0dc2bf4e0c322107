#pragma once
// SignalWatcher: SIGTERM and SIGINT as calls on a thread of their own. The first asks to drain; the
// second ends the process at once, with exit code 128 + signal. Make it before any other thread, so
// that the signals stay blocked everywhere else.

#include <functional>
#include <memory>
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

  // `on_first` is called on the watcher's thread, at once if a signal has come already. Once only.
  void Watch(std::function<void()> on_first);
  // `on_first` is not called any more, and the signals wait.
  void Stop();

 private:
  SignalWatcher(UniqueFd signals, UniqueFd stop);

  UniqueFd signals_;
  UniqueFd stop_;
  std::function<void()> on_first_;
  std::thread thread_;
};

}  // namespace loopfleet
