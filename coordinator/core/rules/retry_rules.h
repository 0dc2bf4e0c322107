#pragma once
// RetryRules: which reported failures are retried, how often, and where. One table, a pure value;
// repeated for readers in docs/PROTOCOL.md.
//
// The rule depends on the likely cause:
// - The worker or its device: retried up to the limit of any job (Limits::max_attempts).
// - The moment (a busy host): a few retries.
// - The job, in a way that a broken host could imitate (a wrong sum, a crash): one retry, but only
//   on another worker of the same hardware class, as only there a second verdict is comparable; on
//   another host if there is one.
// - The job for certain: no retry, which would do the same work for the same answer.

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "common/job/failure.h"

namespace loopfleet::coordinator {

enum class Where : std::uint8_t {
  kRatherElsewhere,  // on another worker if there is one, else on the same
  kOnlyElsewhere,    // on another worker of the hardware class; without one the verdict stands
};

inline constexpr std::uint32_t kAllAttempts = std::numeric_limits<std::uint32_t>::max();

struct RetryRule {
  FailureCode code;
  // The number of verdicts of this code after which it is the outcome. Leases are limited by
  // Limits::max_attempts besides.
  std::uint32_t turns = 1;
  Where where = Where::kRatherElsewhere;
  std::string_view reason;
};

// Every code that is retried. Any other reported failure is final at once.
std::span<const RetryRule> RetryRules();
const RetryRule* RetryRuleOf(FailureCode code);  // null: final

}  // namespace loopfleet::coordinator
