#pragma once
// Arrivals: how many peers may knock at a socket before they have authenticated. Pure; its owner
// counts what happens and asks who is to be let through now.
//
// Each connection takes one of a number of places, and gives it back when its key turns out to be
// good; `per_second` places come back by themselves. While there is none, strangers wait; addresses
// that have authenticated before wait only once as many again are taken. So a fleet that comes back
// passes as fast as its handshakes succeed, and a flood costs no more than `per_second` handshakes.
// What came in before anybody could look is a debt, of which at most a few seconds' worth is kept.

#include "common/base/clock.h"

namespace loopfleet::wire {

// Who may connect.
enum class Admit : std::uint8_t {
  kEverybody,
  kKnown,  // who comes from an address that has authenticated before
  kNobody,
};

class Arrivals {
 public:
  struct Limits {
    double at_once = 256;  // handshakes of a fleet that comes back
    double per_second = 50;
  };

  Arrivals(const Limits& limits, Instant now);

  void Arrived(Instant now);    // a connection was accepted
  void Succeeded(Instant now);  // the handshake of one has succeeded
  Admit WhoAt(Instant now);
  // Whether every place is free: nobody is waited for.
  bool IsCalm(Instant now);

 private:
  double Lowest() const;
  void Refill(Instant now);

  const Limits limits_;
  double places_;
  Instant refilled_;
};

}  // namespace loopfleet::wire
