#pragma once
// ParseJsonLine: parses one line of untrusted text to a JSON value, in bounded depth and memory.
// Errors name the column and the key; they do not use the JSON library's messages.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace loopfleet::client {

struct JsonBounds {
  int nesting = 4;             // arrays and objects inside each other
  std::size_t fields = 256;    // of the outermost object; parsing stops at the first one beyond
  std::size_t values = 65536;  // in total; likewise
};

// The error is one line: "not JSON: unexpected '}' at column 37, behind the key 'actions'". A
// repeated key of the outermost object is an error.
std::expected<nlohmann::json, std::string> ParseJsonLine(std::string_view line,
                                                         const JsonBounds& bounds);

}  // namespace loopfleet::client
