#pragma once
// Channel: length-prefixed messages over one end of a socket pair, with a deadline for each. The
// other side may be a child that runs job code: whatever it sends, Receive ends by the deadline,
// takes at most `max_bytes`, and accepts no descriptors unless asked to. What has come behind a
// message is taken from the system with it, which a side that is asked ahead notices: a call less
// for each. One thread at a time.

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

namespace loopfleet::worker {

inline constexpr std::size_t kMaxPassedFds = 4;  // with one message

class Channel {
 public:
  struct Message {
    std::string bytes;
    std::vector<UniqueFd> fds;
    bool was_waited_for = false;  // it was not there yet, or not all of it
  };

  Channel() = default;
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}

  // Two connected ends, both closed on exec.
  static Result<std::pair<Channel, Channel>> MakePair();

  // kTimeout, kClosed. `fds` stay the caller's.
  Status Send(std::string_view bytes, std::optional<Instant> deadline,
              std::span<const int> fds = {});
  // kTimeout, kClosed (also a message cut off in the middle), kCorrupt (longer than max_bytes).
  Result<std::string> Receive(std::optional<Instant> deadline, std::size_t max_bytes);
  // The same, taking the descriptors sent along: only from a side that is trusted.
  Result<Message> ReceiveWithFds(std::size_t max_bytes, std::optional<Instant> deadline = {});

  // Something can be received without waiting (or the other side is gone).
  bool IsReadable() const;
  // Waits until then, or the deadline, by looking every `nap`: for who is in no hurry. Waking a
  // side that waits in Receive costs the sender 12 us (docs/MEASUREMENT.md), this nothing.
  void WaitInNaps(Nanos nap, Instant deadline) const;

  int fd() const { return fd_.get(); }
  UniqueFd TakeFd() { return std::move(fd_); }

 private:
  enum class Accepts : bool { kBytes, kDescriptorsToo };

  Status WaitFor(short events, std::optional<Instant> deadline);
  // The next message, without its descriptors.
  Result<std::string> ReceiveBytes(std::optional<Instant> deadline, std::size_t max_bytes,
                                   Accepts accepts);
  Status ReadExactly(std::span<char> bytes, std::optional<Instant> deadline, Accepts accepts);
  // At least a byte.
  Result<std::size_t> ReadSome(std::span<char> room, std::optional<Instant> deadline,
                               Accepts accepts);

  UniqueFd fd_;
  std::vector<char> ahead_;    // what came behind the last message is in it
  std::size_t ahead_at_ = 0;   // from here
  std::size_t ahead_end_ = 0;  // to here
  std::vector<UniqueFd> fds_;  // of the last message that has come, as far as it has
  bool has_waited_ = false;    // for the message that is received
};

}  // namespace loopfleet::worker
