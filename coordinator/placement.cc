#include "coordinator/placement.h"

#include <algorithm>

namespace loopfleet::coordinator {

std::vector<std::uint32_t> ShareOut(std::size_t ready, std::span<const std::uint32_t> free_credit) {
  std::vector<std::uint32_t> shares(free_credit.size(), 0);
  bool progress = true;
  while (ready > 0 && progress) {  // at most max(free_credit) rounds
    progress = false;
    for (std::size_t i = 0; i < shares.size() && ready > 0; ++i) {
      if (shares[i] == free_credit[i]) continue;
      ++shares[i];
      --ready;
      progress = true;
    }
  }
  return shares;
}

}  // namespace loopfleet::coordinator
