#include "common/wire/transport/connection_tokens.h"

#include <algorithm>
#include <chrono>

namespace loopfleet::wire {
namespace {

constexpr double kLongestDebtSeconds = 5;

}  // namespace

ConnectionTokens::ConnectionTokens(const Limits& limits, Instant now)
    : limits_(limits), tokens_(limits.at_once), refilled_(now) {}

void ConnectionTokens::Refill(Instant now) {
  const std::chrono::duration<double> passed = now - refilled_;
  tokens_ = std::min(tokens_ + passed.count() * limits_.per_second, limits_.at_once);
  refilled_ = now;
}

void ConnectionTokens::Accepted(Instant now) {
  Refill(now);
  tokens_ = std::max(tokens_ - 1, -kLongestDebtSeconds * limits_.per_second);
}

void ConnectionTokens::Authorized(Instant now) {
  Refill(now);
  tokens_ = std::min(tokens_ + 1, limits_.at_once);
}

bool ConnectionTokens::IsAvailable(Instant now) {
  Refill(now);
  return tokens_ >= 1;
}

bool ConnectionTokens::IsFull(Instant now) {
  Refill(now);
  return tokens_ >= limits_.at_once;
}

}  // namespace loopfleet::wire
