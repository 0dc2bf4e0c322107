#include "monitoring/site.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>

#include "common/base/trim.h"

namespace loopfleet::monitoring {
namespace {

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

bool IsOwnHost(std::string_view host, const std::vector<std::string>& allowed) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto colon = host.rfind(':');
  if (colon != std::string_view::npos && !host.ends_with(']')) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || !std::ranges::all_of(port, is_digit)) return false;
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    in6_addr address{};
    const std::string text(host.substr(1, host.size() - 2));
    return ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
  }
  in_addr address{};
  if (::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1) return true;
  if (EqualsIgnoringCase(host, "localhost")) return true;
  return std::ranges::any_of(
      allowed, [host](const std::string& name) { return EqualsIgnoringCase(host, name); });
}

bool AcceptsGzip(std::string_view accept_encoding) {
  bool accepts_any = false;  // what "*" says of codings that are not listed
  while (!accept_encoding.empty()) {
    const std::string_view item = accept_encoding.substr(0, accept_encoding.find(','));
    accept_encoding.remove_prefix(std::min(accept_encoding.size(), item.size() + 1));
    const auto semicolon = item.find(';');
    const std::string_view coding = Trimmed(item.substr(0, semicolon));
    const std::string_view weight =
        semicolon == std::string_view::npos ? "" : Trimmed(item.substr(semicolon + 1));
    const bool is_refused = EqualsIgnoringCase(weight.substr(0, 2), "q=") &&
                            weight.find_first_not_of("0.", 2) == std::string_view::npos;
    if (EqualsIgnoringCase(coding, "gzip")) return !is_refused;
    if (coding == "*") accepts_any = !is_refused;
  }
  return accepts_any;
}

}  // namespace loopfleet::monitoring
