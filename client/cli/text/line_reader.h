#pragma once
// LineReader: reads numbered lines of a stream in bounded memory. Of a line that is too long it
// keeps max_bytes + 1 bytes, so that the caller notices.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <istream>
#include <optional>
#include <streambuf>
#include <string>

namespace loopfleet::client {

class LineReader {
 public:
  struct Line {
    std::string text;          // without the line break; at most max_bytes + 1 bytes
    std::uint64_t number = 0;  // 1-based, blank lines counted
    bool blank = false;        // only white space, and not too long
  };

  LineReader(std::istream& stream, std::size_t max_bytes)
      : stream_(stream), max_bytes_(max_bytes) {}

  // Nullopt at the end, and on a read error, which failure() describes. A last line without a line
  // break counts as a line.
  std::optional<Line> Next() {
    using Traits = std::istream::traits_type;
    Line line;
    bool any = false;
    for (auto next = NextByte(); !Traits::eq_int_type(next, Traits::eof()); next = NextByte()) {
      any = true;
      const char byte = Traits::to_char_type(next);
      if (byte == '\n') break;
      if (line.text.size() <= max_bytes_) line.text += byte;
    }
    if (!any || !failure_.empty()) return std::nullopt;
    line.number = ++number_;
    line.blank =
        line.text.size() <= max_bytes_ && line.text.find_first_not_of(" \t\r") == std::string::npos;
    return line;
  }

  // The read error that ended the lines early; "": none.
  const std::string& failure() const { return failure_; }

 private:
  // Reads from the stream's buffer, which is several times faster than the stream's own functions.
  // On a read error a file's buffer throws; standard input, which stdio reads, only ends.
  std::istream::int_type NextByte() {
    using Traits = std::istream::traits_type;
    try {
      const auto next = stream_.rdbuf()->sbumpc();
      if (Traits::eq_int_type(next, Traits::eof()) && stream_.rdbuf() == std::cin.rdbuf() &&
          std::ferror(stdin) != 0) {
        failure_ = std::strerror(errno);
      }
      return next;
    } catch (const std::ios_base::failure& error) {
      failure_ = error.code().message();
      return Traits::eof();
    }
  }

  std::istream& stream_;
  std::size_t max_bytes_;
  std::uint64_t number_ = 0;
  std::string failure_;
};

}  // namespace loopfleet::client
