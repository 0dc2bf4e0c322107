#pragma once
// Internal to wire: DescriptorReserve, what a listening socket does while this process has hardly any
// descriptor left. A connection that cannot be accepted stays in the socket's queue, and keeps it
// readable: whoever waits for the socket, as libzmq does, is woken at once, again and again. So the
// last tenth of the descriptors is left to the rest of the process, and who is in the queue by then
// is hung up on; it connects anew.
//
// Belongs to one thread. The socket outlives it.

#include <vector>

#include "common/base/unique_fd.h"

namespace loopfleet::wire {

class DescriptorReserve {
 public:
  explicit DescriptorReserve(int listener);  // one that does not block

  // Nine tenths of what the process may have are taken.
  bool IsTouched() const;
  // Empties the queue. Nobody is to be let into it meanwhile (connection_filter.h).
  void HangUpOnQueue();

 private:
  void Refill();

  const int listener_;
  // Given up for as long as it takes to empty the queue: a burst may have taken everything else. So
  // many, since libzmq goes on accepting meanwhile; that takes it ten times as long as hanging up.
  std::vector<UniqueFd> spare_;
};

}  // namespace loopfleet::wire
