#pragma once
// Internal to wire: the parts of an Authenticator that sockets use.

#include <zmq.hpp>

#include <string_view>
#include <vector>

#include "common/wire/transport/authenticator.h"

namespace loopfleet::wire {

std::string_view ZapDomainOf(Door door);

struct Authenticator::Impl {
  zmq::socket_t socket;
  KeyPair coordinator;
  AuthorizedKeys keys;
  std::vector<zmq::message_t> parts;
  Refusals refusals;

  // Makes `router` ask this authenticator about every connection.
  void Guard(zmq::socket_t& router, Door door) const;
};

}  // namespace loopfleet::wire
