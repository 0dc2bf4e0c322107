#pragma once
// Received: a message that a Router took in, and who sent it.

#include <cstdint>
#include <string>

#include "common/wire/keys/role.h"

namespace loopfleet::wire {

// The routing id of a connection: new for each reconnect, unless the peer chose one itself, which
// it may. It says where an answer goes, and not who asks.
using PeerId = std::string;

// Who sent a message, by the key of its connection.
struct Sender {
  enum class Standing : std::uint8_t {
    kWithoutKey,  // this socket asks for none
    kAuthorized,  // `principal` is who
    kRevoked,     // it was authorized when it connected, and is no more: not to be acted upon
  };
  Standing standing = Standing::kWithoutKey;
  Principal principal;
  std::string key;  // kAuthorized: the text of its public key
};

struct Received {
  PeerId peer;
  std::string frame;
  Sender sender;
};

}  // namespace loopfleet::wire
