#include "coordinator/shell/health.h"

#include <fmt/format.h>

#include <chrono>

namespace loopfleet::coordinator {
namespace {

std::string TextOf(ErrorKind trouble) {
  switch (trouble) {
    case ErrorKind::kFull: return "the database has no room";
    case ErrorKind::kUnavailable: return "another process holds the database";
    default: return "the database cannot be written to: see storage.fails in the log";
  }
}

constexpr auto kStuckAfter = std::chrono::seconds(5);

}  // namespace

Nanos Health::SinceLastTurn() const {
  return clock_.Now() - turned_at_.load(std::memory_order_relaxed);
}

std::vector<std::string> Health::StuckReason() const {
  const Nanos since = SinceLastTurn();
  if (since <= kStuckAfter) return {};
  return {fmt::format("the event loop has not turned for {:.1f} s",
                      std::chrono::duration<double>(since).count())};
}

std::vector<std::string> Health::Reasons() const {
  std::vector<std::string> reasons = StuckReason();
  if (const auto trouble = trouble_.load(std::memory_order_relaxed)) {
    reasons.push_back(TextOf(*trouble));
  }
  return reasons;
}

std::vector<std::string> Health::NotReadyReason() const {
  if (!stopping_.load(std::memory_order_relaxed)) return {};
  return {"it is stopping"};
}

}  // namespace loopfleet::coordinator
