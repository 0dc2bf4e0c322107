#pragma once
// Internal to wire.

#include <zmq.hpp>

#include "common/wire/transport/context.h"

namespace loopfleet::wire {

struct Context::Impl {
  zmq::context_t context;
};

}  // namespace loopfleet::wire
