#include "common/base/suggestion.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

#include "common/base/printable.h"
#include "common/base/utf8.h"

namespace loopfleet {
namespace {

// Optimal string alignment distance, with three rolling rows.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

constexpr std::size_t kComparedCharacters = 128;  // longer than any valid name; bounds the work
constexpr std::size_t kQuotedBytes = 60;

std::string Compared(std::string_view text) {
  std::string compared(text.substr(0, kComparedCharacters));
  std::ranges::transform(compared, compared.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return compared;
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::size_t end = 0;
  while (end < std::min(text.size(), kQuotedBytes)) {
    end += std::max<std::size_t>(CharacterLength(text, end), 1);
  }
  return "'" + Printable(text.substr(0, end)) + (end < text.size() ? "...'" : "'");
}

std::optional<std::string> Nearest(std::string_view text,
                                   std::span<const std::string_view> candidates) {
  const std::string wanted = Compared(text);
  std::optional<std::string> nearest;
  std::size_t nearest_distance = std::max<std::size_t>(2, wanted.size() / 2) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(wanted, Compared(candidate));
    if (distance < nearest_distance) {
      nearest = std::string(candidate);
      nearest_distance = distance;
    }
  }
  return nearest;
}

std::string NearestSuffix(std::string_view text, std::span<const std::string_view> candidates) {
  const auto nearest = Nearest(text, candidates);
  return nearest ? "; nearest: " + *nearest : "";
}

}  // namespace loopfleet
