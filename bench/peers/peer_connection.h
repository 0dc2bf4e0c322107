#pragma once
// PeerConnection: lines and counted bytes to and from a server of another kind: what the peers of
// `queue` speak. One thread's.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::bench {

class PeerConnection {
 public:
  // Each waits until the server is there.
  static Result<PeerConnection> OpenUnix(const std::filesystem::path& path);
  static Result<PeerConnection> OpenTcp(std::uint16_t port);  // of 127.0.0.1

  Status Send(std::string_view bytes);
  Result<std::string> Line();      // without its \r\n
  Status Drop(std::size_t bytes);  // reads them and throws them away
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
