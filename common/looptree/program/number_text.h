#pragma once
// Numbers in text that comes from outside: canonical decimal form only, never more than 64 bits.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::looptree {

// "0", "17", "-3"; not "+5", "007", "1_000", "-0", " 1", "". Nothing if it does not fit.
std::optional<std::int64_t> ParseInteger(std::string_view text);

// As C++ streams print by default where that loses nothing ("0", "1.5"), else enough digits.
std::string NumberText(double number);
std::optional<double> ParseNumber(std::string_view text);

// "a,b," split at `separator`; "" is no parts, otherwise one more part than separators. With `most`
// the last of so many parts is the rest, whatever it holds: for text that may be long and wrong.
std::vector<std::string_view> SplitText(std::string_view text, char separator,
                                        std::size_t most = SIZE_MAX);

// Text from outside for an error message: at most 60 bytes of it, what is not printable as '?'.
std::string Quoted(std::string_view text);

}  // namespace loopfleet::looptree
