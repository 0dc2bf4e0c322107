#pragma once
// KnockingPeer: a TCP connection attempt from an address of this machine, for tests of admission.
// On loopback, an admitted connection is established before the constructor returns.

#include <string>

#include "common/base/unique_fd.h"

namespace loopfleet::wire {

class KnockingPeer {
 public:
  // `from` is one of 127.0.0.0/8 (or "::1"), `endpoint` "tcp://127.0.0.1:4711".
  KnockingPeer(const std::string& from, const std::string& endpoint);

  bool IsConnected();  // at present

 private:
  UniqueFd fd_;
};

}  // namespace loopfleet::wire
