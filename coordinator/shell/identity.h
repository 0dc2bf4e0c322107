#pragma once
// Identity: derives a peer's identity from its key. With keys, the name in authorized/ is the
// identity, across reconnects, restarts of the coordinator, and a new key under the same name.
// Without keys, the id that the peer states counts.

#include <map>
#include <string>

#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/message.h"
#include "common/wire/transport/received.h"

namespace loopfleet::coordinator {

// The client that owns batches: the same for every connection with this name. An admin and a client
// of the same name are different.
Uuid ClientIdOf(const wire::Principal& principal);
// The names of the clients and admins among the keys, by the id that owns their batches.
using ClientNames = std::map<Uuid, std::string>;
ClientNames NamesOf(const wire::AuthorizedKeys& keys);
// A worker's id, derived from its key's name and the id it states, so that no worker can
// impersonate one with another key.
Uuid WorkerIdOf(const wire::Principal& principal, const Uuid& said);

bool IsRevoked(const wire::Sender& sender);
Failure KeyWasRevoked();
// Without keys only this machine can connect, and every peer is an admin.
wire::Role RoleOf(const wire::Sender& sender);

// Replaces the identity that the message states by that of its sender. Without keys: no change.
void Identify(const wire::Sender& sender, wire::ClientHello& hello);
void Identify(const wire::Sender& sender, wire::WorkerHello& hello);
void Identify(const wire::Sender& sender, wire::SetDrain& set);

}  // namespace loopfleet::coordinator
