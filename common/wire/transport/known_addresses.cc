#include "common/wire/transport/known_addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

namespace loopfleet::wire {
namespace {

constexpr int kPrefixBytes = 8;

std::uint64_t PrefixOf(const in6_addr& address) {
  std::uint64_t prefix = 0;
  for (int i = 0; i < kPrefixBytes; ++i) prefix = prefix << 8 | address.s6_addr[i];
  return prefix;
}

}  // namespace

std::optional<SourceAddress> ParseSourceAddress(std::string_view text) {
  const std::string terminated(text);
  if (in_addr v4{}; ::inet_pton(AF_INET, terminated.c_str(), &v4) == 1) {
    return std::uint32_t{ntohl(v4.s_addr)};
  }
  in6_addr v6{};
  if (::inet_pton(AF_INET6, terminated.c_str(), &v6) != 1) return std::nullopt;
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return PrefixOf(v6);
  return std::uint32_t{v6.s6_addr[12]} << 24 | std::uint32_t{v6.s6_addr[13]} << 16 |
         std::uint32_t{v6.s6_addr[14]} << 8 | std::uint32_t{v6.s6_addr[15]};
}

void KnownAddresses::Add(std::string_view address) {
  const auto source = ParseSourceAddress(address);
  if (!source) return;
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::find(known_.addresses, *source);
  if (place != known_.addresses.end()) {
    std::rotate(known_.addresses.begin(), place, place + 1);
    return;
  }
  if (known_.addresses.size() == kMaxAddresses) known_.addresses.pop_back();
  known_.addresses.insert(known_.addresses.begin(), *source);
  ++known_.version;
}

std::uint64_t KnownAddresses::version() const {
  const std::lock_guard lock(mutex_);
  return known_.version;
}

KnownAddresses::Snapshot KnownAddresses::Take() const {
  const std::lock_guard lock(mutex_);
  return known_;
}

}  // namespace loopfleet::wire
