#pragma once
// ParseJsonLine: one line of text from outside to a JSON value, in bounded depth and
// memory. What is wrong with it is said in our words, by column and key: the JSON library's
// messages are its own business.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace loopfleet::client {

struct JsonBounds {
  int nesting = 4;             // arrays and objects inside each other
  std::size_t fields = 256;    // of the outermost object; parsing ends at the first one too many
  std::size_t values = 65536;  // in all; likewise
};

// The error is one line: "not JSON: unexpected '}' at column 37, behind the key 'actions'". No key
// of the outermost object may be given twice.
std::expected<nlohmann::json, std::string> ParseJsonLine(std::string_view line,
                                                         const JsonBounds& bounds);

}  // namespace loopfleet::client
