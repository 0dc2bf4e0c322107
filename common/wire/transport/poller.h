#pragma once
// Poller: waits for several sockets at once. Belongs to one thread.

#include <vector>

#include "common/base/clock.h"
#include "common/wire/transport/authenticator.h"
#include "common/wire/transport/dealer.h"
#include "common/wire/transport/router.h"
#include "common/wire/transport/wakeup.h"

namespace loopfleet::wire {

// Wait returns when a socket is readable, when a wakeup was signalled (which it clears), or on
// timeout. A Dealer that watches its handshakes counts as readable until their results are taken.
class Poller {
 public:
  void Add(Router& router);
  void Add(Dealer& dealer);
  void Add(Wakeup& wakeup);
  void Add(Authenticator& authenticator);
  void AddReadable(int fd);  // any other descriptor; its owner reads it
  void Wait(Nanos timeout);

 private:
  struct Item {
    void* socket = nullptr;
    int fd = -1;
    Wakeup* wakeup = nullptr;
  };
  std::vector<Item> items_;
};

}  // namespace loopfleet::wire
