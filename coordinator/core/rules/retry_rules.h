#pragma once
// RetryRules: which failures that workers report are given another turn, how often, and where. One
// table, a pure value; docs/PROTOCOL.md repeats it for people.
//
// What decides is who may be to blame. The worker or its device: the job has as many turns as any
// (Limits::max_attempts). The moment (a busy host): a few turns. The job, in a way that faulty
// hardware could imitate (a wrong sum, a crash): one more turn, but only on another worker of the
// same hardware class, for there alone a second verdict says something. The job, surely: none; the
// same work would be done for the same answer.

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "common/job/failure.h"

namespace loopfleet::coordinator {

enum class Where : std::uint8_t {
  kRatherElsewhere,  // on another worker if there is one, else on the same
  kOnlyElsewhere,    // on another worker of the hardware class, or not at all: the verdict stands
};

inline constexpr std::uint32_t kAllAttempts = std::numeric_limits<std::uint32_t>::max();

struct RetryRule {
  FailureCode code;
  // Verdicts of this code, in all, after which it is the outcome; never more leases than
  // Limits::max_attempts.
  std::uint32_t turns = 1;
  Where where = Where::kRatherElsewhere;
  std::string_view reason;
};

// Every code that is tried again. Whatever else a worker reports is final at once.
std::span<const RetryRule> RetryRules();
const RetryRule* RetryRuleOf(FailureCode code);  // none: final

}  // namespace loopfleet::coordinator
