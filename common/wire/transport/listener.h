#pragma once
// Internal to wire: makes a listening TCP socket and passes it to ZeroMQ (ZMQ_USE_FD), so that
// ConnectionLimiter can use it, too.

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/wire/transport/endpoint.h"

namespace loopfleet::wire {

// Port 0: any free port. kUnavailable: the address is in use.
Result<UniqueFd> ListenOn(const TcpEndpoint& endpoint, int backlog);

}  // namespace loopfleet::wire
