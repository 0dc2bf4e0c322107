#include "bench/rigs/metrics_page.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "common/base/unique_fd.h"

namespace loopfleet::bench {
namespace {

Result<std::string> Fetch(const std::string& address) {
  const auto failed = [&](const char* what) {
    return Fail(ErrorKind::kUnavailable,
                fmt::format("metrics of {}: {}: {}", address, what, std::strerror(errno)));
  };
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
  if (colon == std::string::npos ||
      ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1) {
    return Fail(ErrorKind::kInvalid, fmt::format("'{}' is not an address and a port", address));
  }
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return failed("connect");
  }
  const std::string request =
      fmt::format("GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", address);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return failed("send");
  std::string page;
  char piece[4096];
  for (;;) {
    const ssize_t count = ::recv(fd.get(), piece, sizeof piece, 0);
    if (count < 0) return failed("recv");
    if (count == 0) return page;
    page.append(piece, static_cast<std::size_t>(count));
  }
}

}  // namespace

Result<std::map<std::string, double>> ReadMetrics(const std::string& address) {
  LF_TRY(const std::string page, Fetch(address));
  std::map<std::string, double> series;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.rfind(' ');
    if (line.starts_with('#') || space == std::string::npos) continue;
    double value = 0;
    const char* const end = line.data() + line.size();
    if (std::from_chars(line.data() + space + 1, end, value).ec == std::errc()) {
      series[line.substr(0, space)] = value;
    }
  }
  return series;
}

}  // namespace loopfleet::bench
