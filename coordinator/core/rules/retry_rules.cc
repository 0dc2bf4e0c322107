#include "coordinator/core/rules/retry_rules.h"

#include <algorithm>
#include <array>

namespace loopfleet::coordinator {
namespace {

using enum FailureCode;

constexpr std::array kRules = {
    RetryRule{kWorkerLost, kAllAttempts, Where::kRatherElsewhere, "the worker went away"},
    RetryRule{kWorkerCrashed, kAllAttempts, Where::kRatherElsewhere,
              "the worker broke, or said what cannot be"},
    RetryRule{kVersionMismatch, kAllAttempts, Where::kRatherElsewhere,
              "the worker is too old to read the job; others may not be"},
    RetryRule{kDeviceFault, kAllAttempts, Where::kRatherElsewhere, "the device failed"},
    RetryRule{kUnstableTiming, 3, Where::kRatherElsewhere,
              "the host was too busy for a figure; a moment later it may not be"},
    // The limits on compiling are in wall time and memory of a host that does other work, too. One
    // retry tells a busy moment from a tree that is too large; each attempt may cost the whole
    // limit.
    RetryRule{kCompileTimeout, 2, Where::kOnlyElsewhere, "a busy host compiles slowly"},
    RetryRule{kCompileOom, 2, Where::kRatherElsewhere, "others may have had the memory"},
    RetryRule{kRunOom, 2, Where::kRatherElsewhere, "others may have had the memory"},
    // A kernel is the same on every worker of a class. Two verdicts that disagree tell a faulty
    // host from a faulty kernel; two that agree settle it, for equal jobs, too.
    RetryRule{kWrongOutput, 2, Where::kOnlyElsewhere, "faulty hardware computes wrongly, too"},
    RetryRule{kRunCrash, 2, Where::kOnlyElsewhere, "faulty hardware crashes, too"},
    RetryRule{kCompileError, 2, Where::kOnlyElsewhere, "a broken compiler refuses any tree"},
    RetryRule{kSandboxViolation, 2, Where::kOnlyElsewhere, "a broken host lets nothing pass"},
};

}  // namespace

std::span<const RetryRule> RetryRules() { return kRules; }

const RetryRule* RetryRuleOf(FailureCode code) {
  const auto* const rule = std::ranges::find(kRules, code, &RetryRule::code);
  return rule == kRules.end() ? nullptr : rule;
}

}  // namespace loopfleet::coordinator
