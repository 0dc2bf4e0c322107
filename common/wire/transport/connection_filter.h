#pragma once
// ConnectionFilter: keeps connections from a listening TCP socket in the kernel, before they cost
// this process anything: a classic BPF program that drops the first packet (SYN) of who is not to
// come in now. That side tries again by itself, after a second and then more rarely, so who is kept
// out is late, and not refused. Established connections are not touched. Needs no privilege.
//
// Belongs to one thread. The socket outlives it.

#include <span>

#include "common/base/result.h"
#include "common/wire/transport/arrivals.h"
#include "common/wire/transport/known_addresses.h"

namespace loopfleet::wire {

class ConnectionFilter {
 public:
  explicit ConnectionFilter(int listener) : listener_(listener) {}

  // kSystem: the kernel takes no such program. As many of the first `known` as it has room for are
  // known to it.
  Status Let(Admit who, std::span<const SourceAddress> known);

 private:
  const int listener_;
};

}  // namespace loopfleet::wire
