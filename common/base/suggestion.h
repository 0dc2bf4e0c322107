#pragma once
// "unknown X 'splt_4'; nearest: split_4": a misspelt value, quoted, and the nearest valid one.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loopfleet {

// Untrusted text for an error message, safe on a terminal: about 60 bytes, of which control
// characters, invisible ones, those that turn the direction of writing, and bytes that are not
// UTF-8 are escaped (\x1b).
std::string Quoted(std::string_view text);

// The candidate with the smallest edit distance (a swap of neighbours counts as one edit, capital
// letters as small ones), the first one on a tie. nullopt if its distance is more than half of
// `text`'s length (at least 2).
std::optional<std::string> Nearest(std::string_view text,
                                   std::span<const std::string_view> candidates);

// The end of an error message: "; nearest: split_4", or "" if no candidate is near.
std::string NearestSuffix(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace loopfleet
