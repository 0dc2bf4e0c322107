#pragma once
// Internal to wire: a listening TCP socket that ZeroMQ is given ready-made (ZMQ_USE_FD), because
// more is to be done with it than ZeroMQ does.

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/wire/transport/endpoint.h"

namespace loopfleet::wire {

// Port 0 is any free one. kUnavailable: the address is in use.
Result<UniqueFd> ListenOn(const TcpEndpoint& endpoint, int backlog);

}  // namespace loopfleet::wire
