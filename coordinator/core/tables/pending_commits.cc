#include "coordinator/core/tables/pending_commits.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

std::uint64_t LargePartsOf(const Evaluation& evaluation) {
  std::uint64_t bytes = 0;
  for (const std::string& note : evaluation.notes) bytes += sizeof note + note.size();
  if (const auto* failure = std::get_if<Failure>(&evaluation.verdict)) {
    bytes += failure->message.size();
  } else if (const auto* measurement = std::get_if<Measurement>(&evaluation.verdict)) {
    bytes += measurement->samples_ns.size() * (sizeof(double) + sizeof(std::uint8_t));
  } else {
    constexpr std::uint64_t kValueBytes = 160;  // its node, and the heads of its texts
    const Observed& observed = evaluation.observed();
    bytes += BytesOf(observed) + observed.values.size() * kValueBytes;
  }
  return bytes;
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
