#include "coordinator/placement.h"

#include <algorithm>

namespace loopfleet::coordinator {

std::uint32_t WorthSending(const Refill& refill, const Appetite& appetite) {
  const auto took = appetite.job_took.count();
  if (took <= 0 || appetite.job_took > refill.short_job) return 1;
  const auto work = static_cast<std::uint64_t>((refill.work.count() + took - 1) / took);
  const std::uint64_t jobs = std::max<std::uint64_t>(refill.jobs, work);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(jobs, 1, std::max(1U, appetite.credit / 2)));
}

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
