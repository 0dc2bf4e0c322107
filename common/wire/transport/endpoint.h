#pragma once
// Internal to wire. What an endpoint's text says.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"
#include "common/wire/transport/socket.h"

namespace loopfleet::wire {

struct TcpEndpoint {
  // An IPv4 or IPv6 address without brackets ("localhost" is written out); to connect to, with
  // keys, also a host's name.
  std::string host;
  std::uint16_t port = 0;
};
struct IpcEndpoint {
  std::string path;  // absolute
};
using Endpoint = std::variant<TcpEndpoint, IpcEndpoint>;

// kInvalid unless it is an endpoint that is served; see CheckListenEndpoint in socket.h.
Result<Endpoint> ParseListenEndpoint(std::string_view text, Protection protection);
Result<Endpoint> ParseConnectEndpoint(std::string_view text, Protection protection);

}  // namespace loopfleet::wire
