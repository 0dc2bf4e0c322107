#include "coordinator/shell/health.h"

#include <optional>

namespace loopfleet::coordinator {

Nanos Health::SinceLastTurn() const {
  return clock_.Now() - turned_at_.load(std::memory_order_relaxed);
}

wire::FleetHealth Health::Now() const {
  const auto snapshot = board_.newest();
  return HealthOf(snapshot ? snapshot->fleet : FleetModel{}, SinceLastTurn());
}

std::vector<std::string> Health::StuckReason() const {
  const std::optional<wire::Attention> stuck = StuckLoop(SinceLastTurn());
  return stuck ? std::vector{stuck->sentence} : std::vector<std::string>{};
}

std::vector<std::string> Health::Reasons() const {
  std::vector<std::string> reasons;
  for (wire::Attention& item : Now().attention) {
    if (FindAttention(item.kind)->is_of_coordinator) reasons.push_back(std::move(item.sentence));
  }
  return reasons;
}

std::vector<std::string> Health::NotReadyReason() const {
  if (!stopping_.load(std::memory_order_relaxed)) return {};
  return {"it is stopping"};
}

}  // namespace loopfleet::coordinator
