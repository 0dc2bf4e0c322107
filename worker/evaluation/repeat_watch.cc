#include "worker/evaluation/repeat_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace loopfleet::worker {

std::optional<double> RepeatWatch::Observe(const Key& key, double elapsed_ns) {
  const auto [entry, is_new] = seen_.try_emplace(key);
  Seen& seen = entry->second;
  if (!is_new) {
    const double before = std::exchange(seen.elapsed_ns, elapsed_ns);
    order_.splice(order_.end(), order_, seen.place);
    return std::abs(elapsed_ns - before) / std::min(elapsed_ns, before);
  }
  seen = {.elapsed_ns = elapsed_ns, .place = order_.insert(order_.end(), &entry->first)};
  if (seen_.size() > most_) {
    seen_.erase(*order_.front());
    order_.pop_front();
  }
  return std::nullopt;
}

}  // namespace loopfleet::worker
