#pragma once
// Wakeup: ends a Poller's wait from another thread or a signal handler.

namespace loopfleet::wire {

class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  void Signal() noexcept;  // async-signal-safe
  void Clear() noexcept;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace loopfleet::wire
