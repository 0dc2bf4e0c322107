#include "client/cli/commands/waiting_notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace loopfleet::client {

std::string WaitingNotice::OnPage(const wire::OutcomePage& page) {
  const Clock::time_point now = Clock::now();
  is_finished_.resize(std::max<std::size_t>(is_finished_.size(), page.batch.job_count));
  for (const Outcome& outcome : page.outcomes) {
    if (outcome.job.index < is_finished_.size()) is_finished_[outcome.job.index] = true;
  }
  if (!page.outcomes.empty()) ask_at_ = now + kQuiet;
  if (now < ask_at_) return "";
  ask_at_ = now + pause_;
  const auto waiting = std::ranges::find(is_finished_, false);
  if (waiting == is_finished_.end()) return "";
  const JobId job{page.batch.batch, static_cast<std::uint32_t>(waiting - is_finished_.begin())};
  const auto explanation = client_.ExplainJob(job);
  if (!explanation || explanation->state != wire::JobState::kQueued) return "";
  if (explanation->reason == said_) return "";
  said_ = explanation->reason;
  pause_ *= 2;
  return fmt::format("job {}: {}", job, said_);
}

}  // namespace loopfleet::client
