#pragma once
// PerProcess: a T for each process that has this object. A forked child makes one of its own at its
// first use and leaves the parent's as it is: threads that are in there do not exist in the child,
// and locks that they hold are never released. Safe from any thread.

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace loopfleet {

template <class T>
class PerProcess {
 public:
  using Make = std::function<std::unique_ptr<T>()>;

  explicit PerProcess(Make make) : make_(std::move(make)), own_(new Own{::getpid(), make_()}) {}
  ~PerProcess() {
    Own* const own = own_;
    if (own->process == ::getpid()) delete own;
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  T& Get() {
    Own* own = own_;
    if (own->process != ::getpid()) {
      std::unique_ptr<Own> mine(new Own{::getpid(), make_()});
      // Another thread of the child may have been first; then `own` is what it made.
      if (own_.compare_exchange_strong(own, mine.get())) own = mine.release();
    }
    return *own->value;
  }

 private:
  struct Own {
    pid_t process;
    std::unique_ptr<T> value;
  };

  const Make make_;
  std::atomic<Own*> own_;
};

}  // namespace loopfleet
