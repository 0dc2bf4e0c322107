#include "tests/support/conversation/conversation.h"

#include <fmt/format.h>

#include <fstream>

#include "common/base/check.h"

namespace loopfleet {

std::vector<std::string> Conversation::Of(Way way) const {
  std::vector<std::string> of;
  for (const Frame& frame : frames) {
    if (frame.way == way) of.push_back(frame.bytes);
  }
  return of;
}

std::string LineOf(const Conversation::Frame& frame) {
  std::string line = frame.way == Conversation::Way::kToCoordinator ? "> " : "< ";
  for (const char byte : frame.bytes) {
    line += fmt::format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  }
  return line;
}

Conversation ReadConversation(const std::filesystem::path& path) {
  std::ifstream file(path);
  LF_CHECK(file.good(), "there is no {}", path.native());
  Conversation conversation;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    LF_CHECK((line.front() == '>' || line.front() == '<') && line.size() % 2 == 0, "{}: '{}'",
             path.native(), line.substr(0, 20));
    Conversation::Frame frame{.way = line.front() == '>' ? Conversation::Way::kToCoordinator
                                                         : Conversation::Way::kFromCoordinator,
                              .bytes = {}};
    for (std::size_t i = 2; i < line.size(); i += 2) {
      frame.bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    }
    conversation.frames.push_back(std::move(frame));
  }
  return conversation;
}

}  // namespace loopfleet
