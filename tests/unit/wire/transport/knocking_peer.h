#pragma once
// A TCP connection that is being made from an address of this machine, for tests of who is let in.
// On loopback, what a listening socket lets in is connected before the constructor comes back.

#include <string>

#include "common/base/unique_fd.h"

namespace loopfleet::wire {

class KnockingPeer {
 public:
  // `from` is one of 127.0.0.0/8 (or "::1"), `endpoint` "tcp://127.0.0.1:4711".
  KnockingPeer(const std::string& from, const std::string& endpoint);

  bool IsConnected();  // by now

 private:
  UniqueFd fd_;
};

}  // namespace loopfleet::wire
