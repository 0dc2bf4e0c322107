#include "common/wire/transport/arrivals.h"

#include <algorithm>
#include <chrono>

namespace loopfleet::wire {
namespace {

constexpr double kLongestDebtSeconds = 5;

}  // namespace

Arrivals::Arrivals(const Limits& limits, Instant now)
    : limits_(limits), places_(limits.at_once), refilled_(now) {}

double Arrivals::Lowest() const {
  return -(limits_.at_once + kLongestDebtSeconds * limits_.per_second);
}

void Arrivals::Refill(Instant now) {
  const std::chrono::duration<double> passed = now - refilled_;
  places_ = std::min(places_ + passed.count() * limits_.per_second, limits_.at_once);
  refilled_ = now;
}

void Arrivals::Arrived(Instant now) {
  Refill(now);
  places_ = std::max(places_ - 1, Lowest());
}

void Arrivals::Succeeded(Instant now) {
  Refill(now);
  places_ = std::min(places_ + 1, limits_.at_once);
}

Admit Arrivals::WhoAt(Instant now) {
  Refill(now);
  if (places_ >= 1) return Admit::kEverybody;
  return places_ >= 1 - limits_.at_once ? Admit::kKnown : Admit::kNobody;
}

bool Arrivals::IsCalm(Instant now) {
  Refill(now);
  return places_ >= limits_.at_once;
}

}  // namespace loopfleet::wire
