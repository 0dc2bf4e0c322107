#pragma once
// LineReader: lines of a stream with their numbers, in bounded memory: of a line that is too long
// only so much is kept that a reader sees that it is.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <streambuf>
#include <string>

namespace loopfleet::client {

class LineReader {
 public:
  struct Line {
    std::string text;          // without the line break; at most max_bytes + 1 of it
    std::uint64_t number = 0;  // 1-based, blank lines counted
    bool blank = false;        // nothing but white space, and not too long
  };

  LineReader(std::istream& stream, std::size_t max_bytes)
      : stream_(stream), max_bytes_(max_bytes) {}

  // Empty at the end. A last line without a line break is a line. Reads the buffer itself: a
  // stream's own way to a byte takes several times as long, and lines may be long.
  std::optional<Line> Next() {
    using Traits = std::istream::traits_type;
    std::streambuf& buffer = *stream_.rdbuf();
    Line line;
    bool any = false;
    for (auto next = buffer.sbumpc(); !Traits::eq_int_type(next, Traits::eof());
         next = buffer.sbumpc()) {
      any = true;
      const char byte = Traits::to_char_type(next);
      if (byte == '\n') break;
      if (line.text.size() <= max_bytes_) line.text += byte;
    }
    if (!any) return std::nullopt;
    line.number = ++number_;
    line.blank =
        line.text.size() <= max_bytes_ && line.text.find_first_not_of(" \t\r") == std::string::npos;
    return line;
  }

 private:
  std::istream& stream_;
  std::size_t max_bytes_;
  std::uint64_t number_ = 0;
};

}  // namespace loopfleet::client
