#pragma once
// Names of loop orders in permutation datasets (spec B.11): "0132" puts loop 0 outermost, then loop
// 1, loop 3 and loop 2. The dataset is named after its list of loops.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::looptree {

constexpr std::uint64_t PermutationCount(std::size_t loops) {
  std::uint64_t count = 1;
  for (std::size_t i = 2; i <= loops; ++i) count *= i;
  return count;
}

// Permutation `index` < PermutationCount, in lexicographic order, as digits. At most 10 loops.
std::string PermutationName(std::size_t loops, std::uint64_t index);
// nullopt unless each of the `loops` digits occurs once.
std::optional<std::vector<std::size_t>> ParsePermutation(std::string_view name, std::size_t loops);

}  // namespace loopfleet::looptree
