#pragma once
// "unknown X 'splt_4'; nearest: split_4": the nearest valid value for a misspelt one.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loopfleet {

// The candidate with the smallest edit distance (a swap of neighbours counts once), the first one
// on a tie; none if even that is further than half of `text`'s length (at least 2).
std::optional<std::string> Nearest(std::string_view text,
                                   std::span<const std::string_view> candidates);

// "; nearest: split_4", or "" where nothing is near: to end an error message with.
std::string NearestSuffix(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace loopfleet
