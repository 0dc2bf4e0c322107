#pragma once
// KnownAddresses: where peers came from that have authenticated, the latest ones. Any thread.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace loopfleet::wire {

// What a host is told by: its IPv4 address, or the first 64 bits of its IPv6 address (the rest a
// host may choose). As numbers, not as bytes of the network.
using SourceAddress = std::variant<std::uint32_t, std::uint64_t>;

// "10.1.2.3", "fd00::1", "::ffff:10.1.2.3" (which is 10.1.2.3).
std::optional<SourceAddress> ParseSourceAddress(std::string_view text);

class KnownAddresses {
 public:
  static constexpr std::size_t kMaxAddresses = 512;  // about what a filter of the kernel holds

  void Add(std::string_view address);  // what is none, such as that of an ipc socket, is not kept

  struct Snapshot {
    std::uint64_t version = 0;             // changes when an address is added that was not there
    std::vector<SourceAddress> addresses;  // the latest first
  };
  std::uint64_t version() const;
  Snapshot Take() const;

 private:
  mutable std::mutex mutex_;
  Snapshot known_;
};

}  // namespace loopfleet::wire
