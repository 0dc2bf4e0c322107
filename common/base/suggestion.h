#pragma once
// "unknown X 'splt_4'; nearest: split_4": the nearest valid value for a misspelt one.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loopfleet {

// The candidate with the smallest edit distance (a swap of neighbours counts as one edit), the
// first one on a tie. nullopt if its distance is more than half of `text`'s length (at least 2).
std::optional<std::string> Nearest(std::string_view text,
                                   std::span<const std::string_view> candidates);

// The end of an error message: "; nearest: split_4", or "" if no candidate is near.
std::string NearestSuffix(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace loopfleet
