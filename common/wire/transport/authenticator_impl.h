#pragma once
// Internal to wire: what sockets have to know of an Authenticator.

#include <zmq.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/wire/transport/authenticator.h"
#include "common/wire/transport/known_addresses.h"

namespace loopfleet::wire {

std::string_view ZapDomainOf(Door door);

struct Authenticator::Impl {
  zmq::socket_t socket;
  KeyPair coordinator;
  AuthorizedKeys keys;
  std::vector<zmq::message_t> parts;
  Refusals refusals;
  // Of those that were let in. Read by the guarded sockets' porches, which may outlive this.
  std::shared_ptr<KnownAddresses> known_addresses = std::make_shared<KnownAddresses>();

  // Makes `router` ask this authenticator about every connection.
  void Guard(zmq::socket_t& router, Door door) const;
};

}  // namespace loopfleet::wire
