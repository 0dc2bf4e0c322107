#include "common/wire/transport/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/number_in.h"

namespace loopfleet::wire {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";
constexpr std::size_t kMaxIpcPathBytes = sizeof(sockaddr_un::sun_path) - 1;  // 107
constexpr std::size_t kMaxHostBytes = 253;
constexpr std::string_view kWithoutKeys =
    "without keys only loopback (tcp://127.0.0.1:PORT) and ipc:// in a directory of mode 0700 "
    "owned by this user are served";

enum class Side { kListen, kConnect };

// The commands that set up keys.
std::string_view KeysHint(Side side) {
  return side == Side::kListen
             ? "make keys with `loopfleet keygen --role coordinator --out KEYS` and, for each "
               "peer, `loopfleet keygen --role worker --name NAME --out NAME-keys --authorize "
               "KEYS`, then add `--keys KEYS`"
             : "add `--keys DIR`, with the key that `loopfleet keygen --name NAME --out DIR "
               "--authorize COORDINATORS_KEYS` makes where the coordinator runs";
}

bool IsIpv4(const std::string& host) {
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool IsIpv6(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool IsLoopback(const std::string& host) { return IsIpv4(host) && host.starts_with("127."); }

bool IsHostName(const std::string& host) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
  };
  return !host.empty() && host.size() <= kMaxHostBytes && std::ranges::all_of(host, fine);
}

Result<std::uint16_t> ParsePort(std::string_view text, std::string_view port) {
  if (const auto number = NumberIn<std::uint16_t>(port)) return *number;
  return Fail(ErrorKind::kInvalid,
              fmt::format("endpoint '{}': '{}' is not a port (0 to 65535)", text, port));
}

Result<Endpoint> ParseTcp(std::string_view text, Side side, Protection protection) {
  const std::string_view place = text.substr(kTcp.size());
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || place.ends_with(']')) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("endpoint '{}' has no port; write tcp://127.0.0.1:PORT", text));
  }
  TcpEndpoint endpoint{.host = std::string(place.substr(0, colon))};
  LF_TRY(endpoint.port, ParsePort(text, place.substr(colon + 1)));
  const bool bracketed = endpoint.host.starts_with('[') && endpoint.host.ends_with(']');
  if (bracketed) endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  if (endpoint.host == "localhost") endpoint.host = "127.0.0.1";
  if (!bracketed && IsLoopback(endpoint.host)) return endpoint;
  if (protection == Protection::kNone) {
    return Fail(ErrorKind::kInvalid, fmt::format("endpoint '{}' is not on an IPv4 loopback "
                                                 "address: {}; {}",
                                                 text, kWithoutKeys, KeysHint(side)));
  }
  if (bracketed ? IsIpv6(endpoint.host) : IsIpv4(endpoint.host)) return endpoint;
  if (side == Side::kConnect && !bracketed && IsHostName(endpoint.host)) return endpoint;
  return Fail(
      ErrorKind::kInvalid,
      fmt::format("endpoint '{}': '{}' is not an address{}; write tcp://10.1.2.3:PORT, "
                  "tcp://[fd00::1]:PORT{}",
                  text, place.substr(0, colon), side == Side::kConnect ? " or a host's name" : "",
                  side == Side::kConnect ? " or tcp://NAME:PORT"
                                         : " or, for all interfaces, tcp://0.0.0.0:PORT"));
}

Status CheckDirectory(std::string_view text, const std::filesystem::path& directory,
                      Protection protection) {
  struct stat info{};
  if (::stat(directory.c_str(), &info) != 0) {
    return Fail(ErrorKind::kInvalid, fmt::format("endpoint '{}': directory {}: {}", text,
                                                 directory.string(), std::strerror(errno)));
  }
  // With keys, others may see the socket: they are not admitted and cannot impersonate its owner.
  const bool is_private = info.st_uid == ::geteuid() && (info.st_mode & 0777) == 0700;
  if (!S_ISDIR(info.st_mode) || (protection == Protection::kNone && !is_private)) {
    return Fail(
        ErrorKind::kInvalid,
        fmt::format("endpoint '{}': {} is not a directory of mode 0700 owned by this user: {}",
                    text, directory.string(), kWithoutKeys));
  }
  return {};
}

Result<Endpoint> ParseIpc(std::string_view text, Protection protection) {
  IpcEndpoint endpoint{.path = std::string(text.substr(kIpc.size()))};
  if (!endpoint.path.starts_with('/') || endpoint.path.ends_with('/') ||
      endpoint.path.find('\0') != std::string::npos) {
    return Fail(
        ErrorKind::kInvalid,
        fmt::format("endpoint '{}' is not ipc:// with the absolute path of a socket", text));
  }
  if (endpoint.path.size() > kMaxIpcPathBytes) {
    return Fail(
        ErrorKind::kInvalid,
        fmt::format("endpoint '{}': the path has {} bytes; the operating system allows {}; use a "
                    "shorter directory",
                    text, endpoint.path.size(), kMaxIpcPathBytes));
  }
  LF_TRY_VOID(CheckDirectory(text, std::filesystem::path(endpoint.path).parent_path(), protection));
  return endpoint;
}

Result<Endpoint> Parse(std::string_view text, Side side, Protection protection) {
  if (text.starts_with(kTcp)) return ParseTcp(text, side, protection);
  if (text.starts_with(kIpc)) return ParseIpc(text, protection);
  return Fail(ErrorKind::kInvalid,
              fmt::format("endpoint '{}' starts with neither tcp:// nor ipc://", text));
}

}  // namespace

Result<Endpoint> ParseListenEndpoint(std::string_view text, Protection protection) {
  return Parse(text, Side::kListen, protection);
}
Result<Endpoint> ParseConnectEndpoint(std::string_view text, Protection protection) {
  return Parse(text, Side::kConnect, protection);
}

Status CheckListenEndpoint(std::string_view endpoint, Protection protection) {
  LF_TRY_VOID(ParseListenEndpoint(endpoint, protection));
  return {};
}
Status CheckConnectEndpoint(std::string_view endpoint, Protection protection) {
  LF_TRY_VOID(ParseConnectEndpoint(endpoint, protection));
  return {};
}

}  // namespace loopfleet::wire
