#pragma once
// TreeKey: identifies a tree. Two keys are equal exactly if program (names normalised, reads
// included), loops and annotations are equal; the cursor and the actions before do not matter.
// Stable across runs, machines and versions (golden tests).

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

struct TreeKey {
  std::array<std::uint8_t, 16> bytes{};  // XXH3-128 of the canonical form
  std::string ToString() const;          // 32 lower-case hexadecimal digits
  static std::optional<TreeKey> Parse(std::string_view hex);
  friend auto operator<=>(const TreeKey&, const TreeKey&) = default;
};

// The text that is hashed. Readable, so that two trees can be compared by eye.
std::string CanonicalForm(const LoopTree& tree);
TreeKey KeyOf(const LoopTree& tree);

}  // namespace loopfleet::looptree
