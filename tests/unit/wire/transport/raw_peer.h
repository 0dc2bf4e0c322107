#pragma once
// A TCP peer that writes bytes of its own choice: garbage, or ZMTP by hand where libzmq would not
// send what a test needs.

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
  // Waits for somebody to connect.
  static RawPeer Accept(int listener);

  void Write(std::string_view bytes);
  // Without security; `name`: what a ROUTER is to call it, empty: as it likes.
  void ShakeHands(std::string_view socket_type = "DEALER", std::string_view name = {});
  enum class More { kFollows, kNone };
  void WriteFrame(std::string_view body, More more);
  // The header of a frame of `length` bytes that are never sent.
  void WriteFrameHeader(std::uint64_t length);
  // True once the other side has closed the connection; false after ten seconds without.
  bool IsClosedByPeer();
  bool HearsWithin(std::chrono::milliseconds limit) const;  // anything at all

  void Reset();   // hangs up without a goodbye (RST)
  void Vanish();  // from now on its kernel answers nothing: a cable that is pulled

 private:
  explicit RawPeer(UniqueFd fd) : fd_(std::move(fd)) {}
  std::string Read(std::size_t count);  // waits for that many

  UniqueFd fd_;
};

}  // namespace loopfleet::wire
