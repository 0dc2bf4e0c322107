#pragma once
// LineReader: lines of a stream with their numbers, in bounded memory: of a line that is too long
// only so much is kept that a reader sees that it is.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>

namespace loopfleet::client {

class LineReader {
 public:
  struct Line {
    std::string text;          // without the line break; at most max_bytes + 1 of it
    std::uint64_t number = 0;  // 1-based, blank lines counted
    bool blank = false;        // nothing but white space
  };

  LineReader(std::istream& stream, std::size_t max_bytes)
      : stream_(stream), max_bytes_(max_bytes) {}

  // Empty at the end. A last line without a line break is a line.
  std::optional<Line> Next() {
    Line line;
    char byte = 0;
    bool any = false;
    while (stream_.get(byte)) {
      any = true;
      if (byte == '\n') break;
      if (line.text.size() <= max_bytes_) line.text += byte;
    }
    if (!any) return std::nullopt;
    line.number = ++number_;
    line.blank = line.text.find_first_not_of(" \t\r") == std::string::npos;
    return line;
  }

 private:
  std::istream& stream_;
  std::size_t max_bytes_;
  std::uint64_t number_ = 0;
};

}  // namespace loopfleet::client
