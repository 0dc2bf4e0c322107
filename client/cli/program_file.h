#pragma once

#include <string>

#include "common/base/result.h"

namespace loopfleet::client {

// The IR text in a file; "-": on standard input. Reads no more than a byte past kMaxLineBytes, so
// that a job line of it is refused as too long.
// Errors: kNotFound, kInvalid, each with the file's name.
Result<std::string> ReadProgram(const std::string& file);

}  // namespace loopfleet::client
