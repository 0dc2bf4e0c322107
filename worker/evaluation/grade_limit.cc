#include "worker/evaluation/grade_limit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace loopfleet::worker {
namespace {

struct Rule {
  std::string_view check;
  Grade best;
};
// The other checks are left out for one of two reasons: the samples show their effect (steal, load,
// smt, heat: a probe runs beside each repetition), or they make no figure wrong (memory, driver,
// sandbox).
constexpr std::array kRules = {
    // The executor shares its core with compilers, verifiers and the network.
    Rule{"cores", Grade::kB},
    // The clock rate is measured beside a round, not within it.
    Rule{"governor", Grade::kB},
    // A process stopped during a repetition may not notice it.
    Rule{"cpu_quota", Grade::kB},
    // One reading takes a microsecond or two of the 60 of a repetition.
    Rule{"clock_source", Grade::kB},
};

}  // namespace

GradeLimit GradeLimitOf(std::span<const monitoring::Finding> findings) {
  GradeLimit limit;
  for (const monitoring::Finding& finding : findings) {
    if (finding.severity != monitoring::Severity::kProblem) continue;
    const auto rule = std::ranges::find(kRules, finding.check, &Rule::check);
    if (rule == kRules.end()) continue;
    limit.best = std::max(limit.best, rule->best);  // A is the smallest
    limit.because.push_back(finding.check);
  }
  return limit;
}

std::string ConditionText(Isolation isolation, const GradeLimit& limit) {
  if (limit.because.empty()) return std::string(IsolationName(isolation));
  return fmt::format("{}; no better than {}: {}", IsolationName(isolation), EnumName(limit.best),
                     fmt::join(limit.because, ", "));
}

}  // namespace loopfleet::worker
