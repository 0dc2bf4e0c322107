#pragma once
// Endpoints: the texts that say where a socket listens or connects to.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"

namespace loopfleet::wire {

enum class Protection : std::uint8_t { kNone, kKeys };

// "tcp://127.0.0.1:5570", "tcp://127.0.0.1:0" (any free port), "ipc:///run/x/clients".
// kInvalid: not an endpoint of a kind that is served. Without keys only loopback and ipc:// in a
// directory of mode 0700 owned by this user are served (promise I5); the error says how to make
// keys. With keys also other addresses: "tcp://0.0.0.0:5570", "tcp://[::]:5570".
Status CheckListenEndpoint(std::string_view endpoint, Protection protection = Protection::kNone);
// The same for the other side, which with keys may also name a host: "tcp://cluster.example:5570".
Status CheckConnectEndpoint(std::string_view endpoint, Protection protection = Protection::kNone);

// ---- internal to wire: what the text says

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

// kInvalid unless it is an endpoint that is served; see CheckListenEndpoint.
Result<Endpoint> ParseListenEndpoint(std::string_view text, Protection protection);
Result<Endpoint> ParseConnectEndpoint(std::string_view text, Protection protection);

}  // namespace loopfleet::wire
