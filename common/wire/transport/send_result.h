#pragma once

namespace loopfleet::wire {

enum class SendResult {
  kSent,
  kWouldBlock,   // the peer reads too slowly: nothing was sent
  kUnreachable,  // the peer is gone
};

}  // namespace loopfleet::wire
