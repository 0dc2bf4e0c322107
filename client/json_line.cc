#include "client/json_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "common/base/suggestion.h"
#include "common/base/utf8.h"

namespace loopfleet::client {
namespace {

using nlohmann::json;

// Thrown through the library's parser, caught by ParseJsonLine.
struct OutOfBounds {
  std::string message;
};

std::string Behind(const std::optional<std::string>& key) {
  return key ? fmt::format(", behind the key {}", Quoted(*key)) : "";
}

// `byte` counts from 1, as in the library; at the end of the text it is one past the last byte.
std::string Unexpected(std::string_view line, std::size_t byte,
                       const std::optional<std::string>& key) {
  if (byte == 0 || byte > line.size()) {
    return fmt::format("not JSON: the line ends too early, at column {}{}", line.size() + 1,
                       Behind(key));
  }
  const std::size_t length = std::max<std::size_t>(CharacterLength(line, byte - 1), 1);
  return fmt::format("not JSON: unexpected {} at column {}{}",
                     Quoted(line.substr(byte - 1, length)), byte, Behind(key));
}

}  // namespace

std::expected<json, std::string> ParseJsonLine(std::string_view line, const JsonBounds& bounds) {
  std::size_t values = 0;
  std::optional<std::string> key;  // the last one read
  std::set<std::string> keys;
  // The callback throws, because the library parses to the end whatever a callback returns.
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > bounds.nesting) {
      throw OutOfBounds{fmt::format("nested deeper than {}{}", bounds.nesting, Behind(key))};
    }
    if (event == json::parse_event_t::key) {
      key = parsed.get<std::string>();
      if (depth == 1 && !keys.insert(*key).second) {
        throw OutOfBounds{fmt::format("the field {} is given twice", Quoted(*key))};
      }
      if (keys.size() > bounds.fields) {
        throw OutOfBounds{fmt::format("more than {} fields", bounds.fields)};
      }
    } else if (event != json::parse_event_t::object_end &&
               event != json::parse_event_t::array_end && ++values > bounds.values) {
      throw OutOfBounds{fmt::format("more than {} values{}", bounds.values, Behind(key))};
    }
    return true;
  };
  try {
    return json::parse(line, watch);
  } catch (const OutOfBounds& refusal) {
    return std::unexpected(refusal.message);
  } catch (const json::parse_error& error) {
    return std::unexpected(Unexpected(line, error.byte, key));
  } catch (const json::exception&) {  // the only other error: a number out of range of a double
    return std::unexpected(fmt::format("not JSON: a number is too large{}", Behind(key)));
  }
}

}  // namespace loopfleet::client
