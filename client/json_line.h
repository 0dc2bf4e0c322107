#pragma once
// ParseJsonLine: one line of text from outside to a JSON value, in bounded depth. What is wrong
// with it is said in our words, by column and key: the JSON library's messages are its own
// business.

#include <nlohmann/json.hpp>

#include <expected>
#include <string>
#include <string_view>

namespace loopfleet::client {

// At most `max_nesting` arrays and objects inside each other. The error is one line: "not JSON:
// unexpected '}' at column 37, behind the key 'actions'". No key of the outermost object may be
// given twice.
std::expected<nlohmann::json, std::string> ParseJsonLine(std::string_view line, int max_nesting);

}  // namespace loopfleet::client
