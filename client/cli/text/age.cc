#include "client/cli/text/age.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

namespace loopfleet::client {
namespace {

struct Unit {
  char letter;
  std::int64_t seconds;
};
constexpr Unit kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86'400}, {'w', 604'800}};
constexpr Unit kDay = kUnits[3];
constexpr std::int64_t kMostSeconds = 36'500 * kDay.seconds;

const Unit* UnitOf(char letter) {
  const auto* found = std::ranges::find(kUnits, letter, &Unit::letter);
  return found == std::end(kUnits) ? nullptr : found;
}

// The age that was probably meant: the first number in the text with the first unit after it, else
// in days.
std::string NearestAge(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto* first = std::ranges::find_if(text, is_digit);
  std::int64_t number = 90;
  const char* behind = std::to_address(text.end());
  if (first != text.end()) {
    const auto read = std::from_chars(first, std::to_address(text.end()), number);
    if (read.ec != std::errc{}) number = kMostSeconds;
    behind = read.ptr;
  }
  Unit unit = kDay;
  for (const char* at = behind; at != std::to_address(text.end()); ++at) {
    if (const Unit* found = UnitOf(static_cast<char>(*at | 0x20))) {  // to lower case
      unit = *found;
      break;
    }
  }
  return fmt::format("{}{}", std::clamp<std::int64_t>(number, 1, kMostSeconds / unit.seconds),
                     unit.letter);
}

}  // namespace

Result<std::chrono::seconds> ParseAge(std::string_view text) {
  const char* end = text.data() + text.size();
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc{} && end - read.ptr == 1) {
    const Unit* unit = UnitOf(*read.ptr);
    if (unit != nullptr && number >= 1 && number <= kMostSeconds / unit->seconds) {
      return std::chrono::seconds(number * unit->seconds);
    }
  }
  return Fail(ErrorKind::kInvalid,
              fmt::format("'{}' is no age: give a whole number and s, m, h, d or w, up to 36500d; "
                          "nearest: {}",
                          text, NearestAge(text)));
}

}  // namespace loopfleet::client
