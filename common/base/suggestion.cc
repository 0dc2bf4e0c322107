#include "common/base/suggestion.h"

#include <algorithm>
#include <cstddef>
#include <vector>

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

}  // namespace

std::optional<std::string> Nearest(std::string_view text,
                                   std::span<const std::string_view> candidates) {
  text = text.substr(0, kComparedCharacters);
  std::optional<std::string> nearest;
  std::size_t nearest_distance = std::max<std::size_t>(2, text.size() / 2) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(text, candidate.substr(0, kComparedCharacters));
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
