#include "coordinator/core/tables/pending_commits.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

std::uint64_t LargePartsOf(const Evaluation& evaluation) {
  constexpr std::uint64_t kValueBytes = 160;  // of its node, and the heads of its texts
  const auto* observed = std::get_if<Observed>(&evaluation.verdict);
  return BytesOf(evaluation) + evaluation.notes.size() * sizeof(std::string) +
         (observed == nullptr ? 0 : observed->values.size() * kValueBytes);
}

Token PendingCommits::Add(Commit commit) {
  if (const auto* outcomes = std::get_if<OutcomeCommit>(&commit)) {
    undurable_outcomes_ += outcomes->outcomes.size();
    undurable_outcome_bytes_ += outcomes->bytes;
  } else {
    undurable_job_bytes_ += std::get<AcceptanceCommit>(commit).bytes;
  }
  commits_.emplace_hint(commits_.end(), ++last_, std::move(commit));
  return last_;
}

Commit PendingCommits::Take(Token token) {
  auto node = commits_.extract(token);
  LF_CHECK(!node.empty(), "nothing under token {} is on its way", token);
  if (const auto* outcomes = std::get_if<OutcomeCommit>(&node.mapped())) {
    undurable_outcomes_ -= outcomes->outcomes.size();
    undurable_outcome_bytes_ -= outcomes->bytes;
  } else {
    undurable_job_bytes_ -= std::get<AcceptanceCommit>(node.mapped()).bytes;
  }
  return std::move(node.mapped());
}

}  // namespace loopfleet::coordinator
