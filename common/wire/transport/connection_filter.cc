#include "common/wire/transport/connection_filter.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace loopfleet::wire {
namespace {

// A program starts at the TCP header; the IP header is found through SKF_NET_OFF.
constexpr std::uint32_t kTcpFlags = 13;
constexpr std::uint32_t kSyn = 0x02;
constexpr std::uint32_t kSynOrAck = 0x12;
constexpr auto kIpHeader = static_cast<std::uint32_t>(SKF_NET_OFF);
constexpr std::uint32_t kIpVersion = 0xf0;  // of its first byte
constexpr std::uint32_t kIpv4 = 0x40;
constexpr std::uint32_t kIpv4Source = 12;
constexpr std::uint32_t kIpv6Source = 8;
constexpr std::uint32_t kPass = 0xffffffff;
constexpr std::uint32_t kDrop = 0;

class Program {
 public:
  std::size_t size() const { return instructions_.size(); }

  void Load(std::uint16_t width, std::uint32_t at) {
    Add(static_cast<std::uint16_t>(BPF_LD | width | BPF_ABS), at);
  }
  void And(std::uint32_t mask) { Add(BPF_ALU | BPF_AND | BPF_K, mask); }
  // Unless they are equal, the next `count` instructions are left out.
  void SkipUnlessEqual(std::uint32_t value, std::uint8_t count) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, value);
    instructions_.back().jf = count;
  }
  void Skip(std::size_t count) { Add(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(count)); }
  void Return(std::uint32_t verdict) { Add(BPF_RET | BPF_K, verdict); }
  void Append(const Program& other) {
    instructions_.insert(instructions_.end(), other.instructions_.begin(),
                         other.instructions_.end());
  }

  int AttachTo(int listener) {
    const sock_fprog program{.len = static_cast<unsigned short>(instructions_.size()),
                             .filter = instructions_.data()};
    return ::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  }

 private:
  void Add(std::uint16_t code, std::uint32_t k) {
    instructions_.push_back({.code = code, .jt = 0, .jf = 0, .k = k});
  }

  std::vector<sock_filter> instructions_;
};

// Drops first packets, unless they come from one of these. A conditional jump reaches no further
// than 255 instructions, so the verdict stands behind each comparison.
Program DroppingAllBut(std::span<const SourceAddress> known) {
  Program v4;
  v4.Load(BPF_W, kIpHeader + kIpv4Source);
  Program v6;
  for (const SourceAddress& address : known) {
    if (const auto* number = std::get_if<std::uint32_t>(&address)) {
      v4.SkipUnlessEqual(*number, 1);
      v4.Return(kPass);
    } else {
      const std::uint64_t prefix = std::get<std::uint64_t>(address);
      v6.Load(BPF_W, kIpHeader + kIpv6Source);
      v6.SkipUnlessEqual(static_cast<std::uint32_t>(prefix >> 32), 3);
      v6.Load(BPF_W, kIpHeader + kIpv6Source + 4);
      v6.SkipUnlessEqual(static_cast<std::uint32_t>(prefix), 1);
      v6.Return(kPass);
    }
  }
  v4.Return(kDrop);
  v6.Return(kDrop);

  Program program;
  program.Load(BPF_B, kTcpFlags);
  program.And(kSynOrAck);
  program.SkipUnlessEqual(kSyn, 1);
  program.Skip(1);
  program.Return(kPass);
  program.Load(BPF_B, kIpHeader);
  program.And(kIpVersion);
  program.SkipUnlessEqual(kIpv4, 1);
  program.Skip(v6.size());
  program.Append(v6);
  program.Append(v4);
  return program;
}

std::unexpected<Error> FailOf(std::string_view doing) {
  return Fail(ErrorKind::kSystem, fmt::format("cannot {}: {}", doing, std::strerror(errno)));
}

}  // namespace

Status ConnectionFilter::Let(Admit who, std::span<const SourceAddress> known) {
  if (who == Admit::kEverybody) {
    const int nothing = 0;
    if (::setsockopt(listener_, SOL_SOCKET, SO_DETACH_FILTER, &nothing, sizeof nothing) != 0 &&
        errno != ENOENT) {  // there was none
      return FailOf("take the filter off a listening socket");
    }
    return {};
  }
  if (who == Admit::kNobody) known = {};
  // The kernel bounds the memory of a socket's options (net.core.optmem_max), and says ENOMEM.
  while (DroppingAllBut(known).AttachTo(listener_) != 0) {
    if (errno != ENOMEM || known.empty()) return FailOf("filter a listening socket's connections");
    known = known.first(known.size() / 2);
  }
  return {};
}

}  // namespace loopfleet::wire
