#pragma once
// Channel: length-prefixed messages over one end of a socket pair, with a deadline for each. The
// other side may be a child that runs job code: whatever it sends, Receive ends by the deadline,
// takes at most `max_bytes`, and accepts no descriptors unless asked to. Each read also takes the
// bytes of later messages that have arrived, which saves a system call per message when requests
// are sent ahead. One thread at a time.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet {

inline constexpr std::size_t kMaxPassedFds = 4;  // with one message

class Channel {
 public:
  struct Message {
    std::string bytes;
    std::vector<UniqueFd> fds;
    bool had_to_wait = false;  // it had not arrived, or not all of it
  };

  Channel() = default;
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}

  // Two connected ends, both closed on exec.
  static Result<std::pair<Channel, Channel>> MakePair();

  // Errors: kTimeout, kClosed. The caller keeps `fds`.
  Status Send(std::string_view bytes, std::optional<Instant> deadline,
              std::span<const int> fds = {});
  // Errors: kTimeout, kClosed (also for a message cut off in the middle), kCorrupt (longer than
  // max_bytes).
  Result<std::string> Receive(std::optional<Instant> deadline, std::size_t max_bytes);
  // The same, accepting the descriptors sent along. Only for a trusted other side.
  Result<Message> ReceiveWithFds(std::size_t max_bytes, std::optional<Instant> deadline = {});

  // Bytes can be received without waiting, or the peer closed the channel.
  bool IsReadable() const;
  // Waits until IsReadable or the deadline. False: the deadline passed.
  bool AwaitReadable(Instant deadline);
  // Waits until IsReadable or the deadline, checking once per `nap`. For callers in no hurry: it
  // costs the sender nothing, while waking a side that waits in Receive costs it 12 us
  // (docs/MEASUREMENT.md).
  void PollUntilReadable(Nanos nap, Instant deadline) const;

  int fd() const { return fd_.get(); }
  UniqueFd TakeFd() { return std::move(fd_); }

 private:
  enum class Accepts : bool { kBytes, kDescriptorsToo };

  Status WaitFor(short events, std::optional<Instant> deadline);
  // The next message, without its descriptors.
  Result<std::string> ReceiveBytes(std::optional<Instant> deadline, std::size_t max_bytes,
                                   Accepts accepts);
  Status ReadExactly(std::span<char> bytes, std::optional<Instant> deadline, Accepts accepts);
  // Reads at least one byte; returns how many.
  Result<std::size_t> ReadSome(std::span<char> room, std::optional<Instant> deadline,
                               Accepts accepts);

  UniqueFd fd_;
  std::vector<char> ahead_;    // bytes received behind the last message
  std::size_t ahead_at_ = 0;   // the first unread byte
  std::size_t ahead_end_ = 0;  // the end of the received bytes
  std::vector<UniqueFd> fds_;  // of the last message that has begun to arrive
  bool has_waited_ = false;    // for the message being received
};

}  // namespace loopfleet
