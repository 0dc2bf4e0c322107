#pragma once
// Internal to wire: DescriptorReserve, which keeps the last tenth of the process's file descriptors
// for other use than new connections. A connection that cannot be accepted stays in the listening
// socket's queue and keeps it readable, so libzmq's thread would spin. The queue is emptied
// instead; the peers reconnect.
//
// Belongs to one thread. The socket outlives it.

#include "common/base/result.h"

namespace loopfleet::wire {

class DescriptorReserve {
 public:
  explicit DescriptorReserve(int listener) : listener_(listener) {}  // one that does not block

  // Nine tenths of the process's descriptors are in use.
  bool IsTouched() const;
  // Closes the connections in the queue, even if the process has no descriptor left. The caller
  // keeps new ones out (connection_limiter.h). Error: the kernel refused; libzmq keeps trying.
  Status HangUpOnQueue() const;

 private:
  const int listener_;
};

}  // namespace loopfleet::wire
