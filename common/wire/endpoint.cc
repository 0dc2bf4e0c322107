#include "common/wire/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "common/wire/socket.h"

namespace loopfleet::wire {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";
constexpr std::size_t kMaxIpcPathBytes = sizeof(sockaddr_un::sun_path) - 1;  // 107
constexpr std::string_view kWithoutKeys =
    "keys are not available in this version, so only loopback (tcp://127.0.0.1:PORT) and ipc:// in "
    "a "
    "directory of mode 0700 owned by this user are served";

bool IsLoopback(const std::string& host) {
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) != 1) return false;
  return (ntohl(address.s_addr) >> 24) == 127;
}

Result<Endpoint> ParseTcp(std::string_view text) {
  const std::string_view place = text.substr(kTcp.size());
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("endpoint '{}' has no port; write tcp://127.0.0.1:PORT", text));
  }
  TcpEndpoint endpoint{.host = std::string(place.substr(0, colon))};
  if (endpoint.host == "localhost") endpoint.host = "127.0.0.1";
  const std::string_view port = place.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size()) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("endpoint '{}': '{}' is not a port (0 to 65535)", text, port));
  }
  if (!IsLoopback(endpoint.host)) {
    return Fail(
        ErrorKind::kInvalid,
        fmt::format("endpoint '{}' is not on an IPv4 loopback address: {}", text, kWithoutKeys));
  }
  return endpoint;
}

Status CheckDirectory(std::string_view text, const std::filesystem::path& directory) {
  struct stat info{};
  if (::stat(directory.c_str(), &info) != 0) {
    return Fail(ErrorKind::kInvalid, fmt::format("endpoint '{}': directory {}: {}", text,
                                                 directory.string(), std::strerror(errno)));
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 0777) != 0700) {
    return Fail(
        ErrorKind::kInvalid,
        fmt::format("endpoint '{}': {} is not a directory of mode 0700 owned by this user: {}",
                    text, directory.string(), kWithoutKeys));
  }
  return {};
}

Result<Endpoint> ParseIpc(std::string_view text) {
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
  LF_TRY_VOID(CheckDirectory(text, std::filesystem::path(endpoint.path).parent_path()));
  return endpoint;
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view text) {
  if (text.starts_with(kTcp)) return ParseTcp(text);
  if (text.starts_with(kIpc)) return ParseIpc(text);
  return Fail(ErrorKind::kInvalid,
              fmt::format("endpoint '{}' starts with neither tcp:// nor ipc://", text));
}

Status CheckEndpoint(std::string_view endpoint) {
  LF_TRY_VOID(ParseEndpoint(endpoint));
  return {};
}

}  // namespace loopfleet::wire
