#pragma once
// Identity: what a key makes of those who come with it. What peers say of themselves counts only
// where there are no keys; with keys, a name in authorized/ is the identity, over reconnects,
// restarts of the coordinator, and a new key under the same name.

#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/wire/message.h"
#include "common/wire/transport/received.h"

namespace loopfleet::coordinator {

// The client that batches belong to: the same for every connection of this name. An admin is not
// the client of the same name.
Uuid ClientIdOf(const wire::Principal& principal);
// A worker's, made of its key's name and of what it says, so that no worker can take the place of
// another key's.
Uuid WorkerIdOf(const wire::Principal& principal, const Uuid& said);

bool IsRevoked(const wire::Sender& sender);
Failure KeyWasRevoked();
// Without keys everybody who can connect is this machine's user.
wire::Role RoleOf(const wire::Sender& sender);

// Puts who a message is from in the place of what it says.
void Identify(const wire::Sender& sender, wire::ClientHello& hello);
void Identify(const wire::Sender& sender, wire::WorkerHello& hello);
void Identify(const wire::Sender& sender, wire::SetDrain& set);

}  // namespace loopfleet::coordinator
