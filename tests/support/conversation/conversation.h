#pragma once
// A conversation between a peer and a coordinator, recorded frame by frame with the programs of an
// older version (record_conversation). In the file each frame is a line of hex: ">" towards the
// coordinator, "<" from it; "#" begins a comment.

#include <filesystem>
#include <string>
#include <vector>

namespace loopfleet {

struct Conversation {
  enum class Way { kToCoordinator, kFromCoordinator };
  struct Frame {
    Way way;
    std::string bytes;
  };
  std::vector<Frame> frames;

  std::vector<std::string> Of(Way way) const;
};

std::string LineOf(const Conversation::Frame& frame);
// Aborts if the file is malformed: it is part of the tests.
Conversation ReadConversation(const std::filesystem::path& path);

}  // namespace loopfleet
