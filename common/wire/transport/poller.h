#pragma once
// Poller: waits for several sockets at once. Belongs to one thread.

#include <vector>

#include "common/base/clock.h"
#include "common/wire/transport/authenticator.h"
#include "common/wire/transport/dealer.h"
#include "common/wire/transport/router.h"
#include "common/wire/transport/wakeup.h"

namespace loopfleet::wire {

// Waits until one of its sockets can be read, or a wakeup was signalled (and clears it), or time is
// up. A Dealer that watches its handshakes counts as one that can be read until it is asked for
// what came of them.
class Poller {
 public:
  void Add(Router& router);
  void Add(Dealer& dealer);
  void Add(Wakeup& wakeup);
  void Add(Authenticator& authenticator);
  void AddReadable(int fd);  // any other thing that can be read; its owner reads it
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
