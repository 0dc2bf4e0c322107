#pragma once
// PeerConnection: sends and receives lines and counted bytes, as the servers that `queue` is
// compared with speak. Used by one thread.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::bench {

class PeerConnection {
 public:
  // Each waits until the server accepts connections.
  static Result<PeerConnection> OpenUnix(const std::filesystem::path& path);
  static Result<PeerConnection> OpenTcp(std::uint16_t port);  // on 127.0.0.1

  Status Send(std::string_view bytes);
  Result<std::string> Line();      // without its \r\n
  Status Drop(std::size_t bytes);  // reads and discards them
  Result<std::string> Take(std::size_t bytes);

 private:
  explicit PeerConnection(UniqueFd fd) : fd_(std::move(fd)) {}
  Status Fill();

  UniqueFd fd_;
  std::string buffer_;
  std::size_t position_ = 0;
};

// A TCP port that was free a moment ago.
Result<std::uint16_t> FreePort();

}  // namespace loopfleet::bench
