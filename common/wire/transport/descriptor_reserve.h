#pragma once
// Internal to wire: DescriptorReserve, what a listening socket does while this process has hardly
// any descriptor left. A connection that cannot be accepted stays in the socket's queue, and keeps
// it readable: whoever waits for the socket, as libzmq does, is woken at once, again and again. So
// the last tenth of the descriptors is left to the rest of the process, and who is in the queue by
// then is hung up on; it connects anew.
//
// Belongs to one thread. The socket outlives it.

#include "common/base/result.h"

namespace loopfleet::wire {

class DescriptorReserve {
 public:
  explicit DescriptorReserve(int listener) : listener_(listener) {}  // one that does not block

  // Nine tenths of what the process may have are taken.
  bool IsTouched() const;
  // Empties the queue, whether or not the process has a descriptor left. Nobody is to be let into
  // it meanwhile (connection_filter.h). Error: the kernel does not allow it; libzmq goes on trying.
  Status HangUpOnQueue() const;

 private:
  const int listener_;
};

}  // namespace loopfleet::wire
