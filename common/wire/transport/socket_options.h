#pragma once
// Internal to wire: socket options and helpers that Router and Dealer share.

#include <zmq.hpp>

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/transport/endpoint.h"

namespace loopfleet::wire {

// `max_unsent`, `max_unreceived`: queued messages to and from each peer.
void SetCommonOptions(zmq::socket_t& socket, const Endpoint& endpoint, int max_unsent,
                      int max_unreceived, std::chrono::milliseconds max_silence);

std::string ZmqName(const Endpoint& endpoint);
std::unexpected<Error> FailOf(const zmq::error_t& error, std::string_view doing,
                              std::string_view endpoint);
void CheckSize(std::string_view frame);  // aborts if it exceeds kMaxMessageBytes

}  // namespace loopfleet::wire
