#include "client/cli/program_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "client/job_line.h"

namespace loopfleet::client {

Result<std::string> ReadProgram(const std::string& file) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file);
    if (!opened) {
      return Fail(ErrorKind::kNotFound,
                  fmt::format("cannot read '{}': {}", file, std::strerror(errno)));
    }
  }
  std::istream& stream = file == "-" ? std::cin : opened;
  std::string text;
  for (char byte = 0; text.size() <= kMaxLineBytes && stream.get(byte);) text += byte;
  // `file` may be a directory. Standard input, which stdio reads, only ends on an error.
  if (stream.bad() || (file == "-" && std::ferror(stdin) != 0)) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("cannot read '{}': {}", file, std::strerror(errno != 0 ? errno : EIO)));
  }
  return text;
}

}  // namespace loopfleet::client
