#pragma once
// Endpoints: texts that say where a socket listens or connects.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"

namespace loopfleet::wire {

enum class Protection : std::uint8_t { kNone, kKeys };

// "tcp://127.0.0.1:5570", "tcp://127.0.0.1:0" (any free port), "ipc:///run/x/clients".
// kInvalid: not an endpoint, or not one that is served. Without keys only loopback and ipc:// in a
// directory of mode 0700 owned by this user are served (promise I5); the error says how to make
// keys. With keys other addresses are served, too: "tcp://0.0.0.0:5570", "tcp://[::]:5570".
Status CheckListenEndpoint(std::string_view endpoint, Protection protection = Protection::kNone);
// The same for connecting. With keys, it may also name a host: "tcp://cluster.example:5570".
Status CheckConnectEndpoint(std::string_view endpoint, Protection protection = Protection::kNone);

// ---- internal to wire: parsed endpoints

struct TcpEndpoint {
  // An IPv4 or IPv6 address without brackets ("localhost" becomes 127.0.0.1); when connecting with
  // keys, also a host name.
  std::string host;
  std::uint16_t port = 0;
};
struct IpcEndpoint {
  std::string path;  // absolute
};
using Endpoint = std::variant<TcpEndpoint, IpcEndpoint>;

// kInvalid unless it is an endpoint that is served; see CheckListenEndpoint.
Result<Endpoint> ParseListenEndpoint(std::string_view text, Protection protection);
Result<Endpoint> ParseConnectEndpoint(std::string_view text, Protection protection);

}  // namespace loopfleet::wire
