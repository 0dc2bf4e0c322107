#pragma once
// Handshakes: Authenticator::Serve() for whoever reads the keys from files that change meanwhile.

#include <functional>

#include "common/wire/transport/authenticator.h"

namespace loopfleet::wire {

// Answers the handshakes that wait, a bounded number. `before_each` is called when one has arrived
// and has not been judged, and may Replace() the keys: so a key that was authorized before its
// connection was made is never refused, however late this thread gets to run.
void ServeHandshakes(Authenticator& authenticator, const std::function<void()>& before_each);

}  // namespace loopfleet::wire
