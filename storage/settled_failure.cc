#include "storage/settled_failure.h"

#include <algorithm>
#include <set>
#include <string>

namespace loopfleet::storage {

bool Settles(FailureCode code, std::span<const Verdict> verdicts, const Candidates& candidates,
             WallTime now) {
  if (code == FailureCode::kCut) return true;
  const bool is_circumstantial = InfoOf(code).policy.is_circumstantial;
  const auto by = is_circumstantial ? &Witness::worker : &Witness::host;
  const Nanos max_age = is_circumstantial ? kCircumstantialAge : kOneHostsVerdictAge;
  std::set<std::string> hosts;
  std::set<std::string> recent;
  for (const Verdict& verdict : verdicts) {
    const bool is_recent = verdict.given_at + max_age >= now;
    if (is_recent || !is_circumstantial) hosts.insert(verdict.witness.host);
    if (is_recent) recent.insert(verdict.witness.*by);
  }
  if (hosts.size() >= (is_circumstantial ? kEnoughHosts : 2)) return true;
  if (recent.empty() || !candidates) return false;
  const std::vector<Witness> could = candidates();
  return !could.empty() && std::ranges::all_of(could, [&](const Witness& candidate) {
    return recent.contains(candidate.*by);
  });
}

}  // namespace loopfleet::storage
