#include "client/json_line.h"

#include <fmt/format.h>

#include <optional>
#include <set>

namespace loopfleet::client {
namespace {

using nlohmann::json;

constexpr std::size_t kQuotedBytes = 60;  // of a key in a message

// Printable ASCII only, and not too much of it.
std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, kQuotedBytes));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

std::string Behind(const std::optional<std::string>& key) {
  return key ? fmt::format(", behind the key '{}'", Shown(*key)) : "";
}

// `byte` counts from 1, as the library does; one past the last at the end of the text.
std::string Unexpected(std::string_view line, std::size_t byte,
                       const std::optional<std::string>& key) {
  if (byte == 0 || byte > line.size()) {
    return fmt::format("not JSON: the line ends too early, at column {}{}", line.size() + 1,
                       Behind(key));
  }
  return fmt::format("not JSON: unexpected '{}' at column {}{}", Shown(line.substr(byte - 1, 1)),
                     byte, Behind(key));
}

}  // namespace

std::expected<json, std::string> ParseJsonLine(std::string_view line, int max_nesting) {
  bool too_deep = false;
  std::optional<std::string> key;  // the last one read
  std::optional<std::string> twice;
  std::set<std::string> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > max_nesting) too_deep = true;
    if (event == json::parse_event_t::key && parsed.is_string()) {
      key = parsed.get<std::string>();
      if (depth == 1 && !keys.insert(*key).second) twice = key;
    }
    return !too_deep;
  };
  json value;
  try {
    value = json::parse(line, watch);
  } catch (const json::parse_error& error) {
    return std::unexpected(Unexpected(line, error.byte, key));
  } catch (const json::exception&) {  // the only other way to fail: a number beyond any double
    return std::unexpected(fmt::format("not JSON: a number is too large{}", Behind(key)));
  }
  if (too_deep) {
    return std::unexpected(fmt::format("nested deeper than {}{}", max_nesting, Behind(key)));
  }
  if (twice) return std::unexpected(fmt::format("the field '{}' is given twice", Shown(*twice)));
  return value;
}

}  // namespace loopfleet::client
