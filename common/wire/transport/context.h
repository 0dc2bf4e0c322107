#pragma once
// Context: owns the I/O thread that moves the messages of all sockets made with it. Outlives them.

#include <memory>

namespace loopfleet::wire {

class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::wire
