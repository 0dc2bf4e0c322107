#pragma once

namespace loopfleet::wire {

enum class SendResult {
  kSent,
  kWouldBlock,   // the peer does not read as fast as it is written to: nothing was sent
  kUnreachable,  // the peer is gone
};

}  // namespace loopfleet::wire
