#pragma once
// Received: a message that a Router received, and its sender.

#include <cstdint>
#include <string>

#include "common/wire/keys/role.h"

namespace loopfleet::wire {

// The routing id of a connection: new for each reconnect, unless the peer chose one itself. It says
// where to send an answer and does not identify the sender.
using PeerId = std::string;

// The sender of a message, by the key of its connection.
struct Sender {
  enum class Standing : std::uint8_t {
    kWithoutKey,  // this socket uses no keys
    kAuthorized,  // `principal` owns the key
    kRevoked,     // authorized when it connected, revoked since: the message must have no effect
  };
  Standing standing = Standing::kWithoutKey;
  Principal principal;
  std::string key;  // if kAuthorized: the text of its public key
};

struct Received {
  PeerId peer;
  std::string frame;
  Sender sender;
};

}  // namespace loopfleet::wire
