#pragma once
// TreeKey: names a tree. Equal for two requests exactly when program (names normalised, reads
// included), loops and annotations are equal; the cursor and the way there play no part. Stable
// across runs, machines and versions (golden in tests).

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

// The canonical form that is hashed: text, so that a difference can be read.
std::string CanonicalForm(const LoopTree& tree);
TreeKey KeyOf(const LoopTree& tree);

}  // namespace loopfleet::looptree
