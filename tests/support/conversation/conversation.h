#pragma once
// A conversation between a peer and a coordinator that was recorded once, frame by frame, with the
// programs of an older version (record_conversation). In its file each frame is a line of hex:
// ">" towards the coordinator, "<" from it; lines with "#" are remarks.

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
// Aborts if the file is not one: it is part of the tests.
Conversation ReadConversation(const std::filesystem::path& path);

}  // namespace loopfleet
