#pragma once
// RawPeer: a TCP peer that writes arbitrary bytes: garbage, or ZMTP by hand that libzmq would not
// send.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/unique_fd.h"

namespace loopfleet::wire {

class RawPeer {
 public:
  explicit RawPeer(const std::string& tcp_endpoint);  // "tcp://127.0.0.1:4711"
  // Waits for a connection.
  static RawPeer Accept(int listener);

  void Write(std::string_view bytes);
  // Without security. `name`: the routing id that a ROUTER should use; empty: it chooses one.
  void ShakeHands(std::string_view socket_type = "DEALER", std::string_view name = {});
  enum class More { kFollows, kNone };
  void WriteFrame(std::string_view body, More more);
  // The header of a frame of `length` bytes that are never sent.
  void WriteFrameHeader(std::uint64_t length);
  // True once the other side has closed the connection; false if it has not within ten seconds.
  bool IsClosedByPeer();
  bool HearsWithin(std::chrono::milliseconds limit) const;  // anything at all

  void Reset();   // hangs up without a goodbye (RST)
  void Vanish();  // from now on its kernel answers nothing, as if the cable were pulled

 private:
  explicit RawPeer(UniqueFd fd) : fd_(std::move(fd)) {}
  std::string Read(std::size_t count);  // waits for all of them

  UniqueFd fd_;
};

}  // namespace loopfleet::wire
