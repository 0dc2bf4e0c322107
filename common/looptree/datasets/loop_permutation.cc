#include "common/looptree/datasets/loop_permutation.h"

#include <numeric>

namespace loopfleet::looptree {

std::string PermutationName(std::size_t loops, std::uint64_t index) {
  std::string left(loops, '0');
  std::iota(left.begin(), left.end(), '0');
  std::string name;
  for (std::size_t remaining = loops; remaining > 0; --remaining) {
    const std::uint64_t block = PermutationCount(remaining - 1);
    const auto at = static_cast<std::ptrdiff_t>(index / block);
    name += left[static_cast<std::size_t>(at)];
    left.erase(left.begin() + at);
    index %= block;
  }
  return name;
}

std::optional<std::vector<std::size_t>> ParsePermutation(std::string_view name, std::size_t loops) {
  if (name.size() != loops) return std::nullopt;
  std::vector<bool> seen(loops, false);
  std::vector<std::size_t> order;
  for (const char digit : name) {
    const auto loop = static_cast<std::size_t>(digit - '0');  // wraps round below '0'
    if (loop >= loops || seen[loop]) return std::nullopt;
    seen[loop] = true;
    order.push_back(loop);
  }
  return order;
}

}  // namespace loopfleet::looptree
