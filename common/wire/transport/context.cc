#include "common/wire/transport/context.h"

#include "common/wire/transport/context_impl.h"

namespace loopfleet::wire {

namespace {

constexpr int kMaxSockets = 4096;  // for one context: a simulated fleet runs in one process

}  // namespace

Context::Context() : impl_(std::make_unique<Impl>()) {
  impl_->context.set(zmq::ctxopt::max_sockets, kMaxSockets);
}
Context::~Context() = default;

}  // namespace loopfleet::wire
