#include "common/looptree/program/number_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "common/base/number_in.h"

namespace loopfleet::looptree {

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (digits[0] == '0' && text != "0")) return std::nullopt;
  return NumberIn<std::int64_t>(text);
}

std::string NumberText(double number) {
  std::string text = fmt::format("{:g}", number);
  if (ParseNumber(text) == number) return text;
  return fmt::format("{:.17g}", number);
}

std::optional<double> ParseNumber(std::string_view text) {
  const auto value = NumberIn<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string HexNumberText(double number) { return fmt::format("{:a}", number); }

std::optional<double> ParseHexNumber(std::string_view text) {
  std::string digits(text.substr(0, text.starts_with('-') ? 1 : 0));
  std::string_view rest = text.substr(digits.size());
  if (rest.starts_with("0x")) rest.remove_prefix(2);
  digits += rest;
  double value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::hex);
  if (error != std::errc() || end != digits.data() + digits.size() || std::isnan(value) ||
      HexNumberText(value) != text) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::string_view> SplitText(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (;;) {
    const std::size_t at = parts.size() + 1 < most ? text.find(separator) : std::string_view::npos;
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace loopfleet::looptree
