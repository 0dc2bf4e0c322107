#pragma once
// Internal to wire: what Router and Dealer set alike.

#include <zmq.hpp>

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/transport/endpoint.h"

namespace loopfleet::wire {

// `max_unsent`, `max_unreceived`: messages for or from each peer.
void SetCommonOptions(zmq::socket_t& socket, const Endpoint& endpoint, int max_unsent,
                      int max_unreceived, std::chrono::milliseconds max_silence);

std::string ZmqName(const Endpoint& endpoint);
std::unexpected<Error> FailOf(const zmq::error_t& error, std::string_view doing,
                              std::string_view endpoint);
void CheckSize(std::string_view frame);  // aborts if it is more than kMaxMessageBytes

}  // namespace loopfleet::wire
