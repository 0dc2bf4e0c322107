#include "coordinator/health.h"

#include <fmt/format.h>

#include <chrono>

namespace loopfleet::coordinator {
namespace {

constexpr auto kStuckAfter = std::chrono::seconds(5);

}  // namespace

Nanos Health::SinceLastTurn() const {
  return clock_.Now() - turned_at_.load(std::memory_order_relaxed);
}

bool Health::IsTurning() const { return SinceLastTurn() <= kStuckAfter; }

std::vector<std::string> Health::Reasons() const {
  std::vector<std::string> reasons;
  const Nanos since = SinceLastTurn();
  if (since > kStuckAfter) {
    reasons.push_back(fmt::format("the event loop has not turned for {:.1f} s",
                                  std::chrono::duration<double>(since).count()));
  }
  if (full_.load(std::memory_order_relaxed)) reasons.emplace_back("the database has no room");
  return reasons;
}

}  // namespace loopfleet::coordinator
