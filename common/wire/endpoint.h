#pragma once
// Internal to wire. What an endpoint's text says.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"

namespace loopfleet::wire {

struct TcpEndpoint {
  std::string host;  // an IPv4 address; "localhost" is written out
  std::uint16_t port = 0;
};
struct IpcEndpoint {
  std::string path;  // absolute
};
using Endpoint = std::variant<TcpEndpoint, IpcEndpoint>;

// kInvalid unless it is an endpoint that is served; see CheckEndpoint in socket.h.
Result<Endpoint> ParseEndpoint(std::string_view text);

}  // namespace loopfleet::wire
