#pragma once
// Numbers in untrusted text. Integers in canonical decimal form only, at most 64 bits.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::looptree {

// "0", "17", "-3"; not "+5", "007", "1_000", "-0", " 1", "". nullopt if it does not fit.
std::optional<std::int64_t> ParseInteger(std::string_view text);

// As C++ streams print by default if that is exact ("0", "1.5"); otherwise with 17 digits.
std::string NumberText(double number);
// nullopt if it is not a finite number.
std::optional<double> ParseNumber(std::string_view text);

// As C's %a, without loss: "0x1.8p+1", "-inf".
std::string HexNumberText(double number);
// nullopt if HexNumberText writes no number so.
std::optional<double> ParseHexNumber(std::string_view text);

// Splits "a,b," at `separator`. "" has no parts; other text has one more part than separators, but
// at most `most`: the last part is then the unsplit rest, so that long invalid text stays cheap.
std::vector<std::string_view> SplitText(std::string_view text, char separator,
                                        std::size_t most = SIZE_MAX);

}  // namespace loopfleet::looptree
