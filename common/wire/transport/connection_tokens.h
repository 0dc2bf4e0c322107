#pragma once
// Internal to wire: ConnectionTokens, a token bucket of new connections. Pure; ConnectionLimiter
// reports what happens and asks whether the next connection may come in.
//
// A connection takes a token, and returns it if its key turns out to be authorized; `per_second`
// tokens come back by themselves. So a returning fleet passes as fast as its handshakes succeed,
// and a flood costs at most `per_second` handshakes a second. Connections that were accepted before
// the limiter could act are a debt, of which at most five seconds' worth is kept.

#include "common/base/clock.h"

namespace loopfleet::wire {

class ConnectionTokens {
 public:
  struct Limits {
    double at_once = 256;    // connections; the handshakes of a returning fleet
    double per_second = 50;  // connections
  };

  ConnectionTokens(const Limits& limits, Instant now);

  void Accepted(Instant now);
  void Authorized(Instant now);
  bool IsAvailable(Instant now);
  bool IsFull(Instant now);  // no connection is owed a token

 private:
  void Refill(Instant now);

  const Limits limits_;
  double tokens_;
  Instant refilled_;
};

}  // namespace loopfleet::wire
