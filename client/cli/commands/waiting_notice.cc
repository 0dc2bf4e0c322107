#include "client/cli/commands/waiting_notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/printable.h"

namespace loopfleet::client {
namespace {

// Counts and times change while the reason stays.
std::string WithoutNumbers(std::string text) {
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return text;
}

}  // namespace

std::string WaitingNotice::OnPage(const wire::OutcomePage& page) {
  const Clock::time_point now = Clock::now();
  is_finished_.resize(std::max<std::size_t>(is_finished_.size(), page.batch.job_count));
  for (const Outcome& outcome : page.outcomes) {
    if (outcome.job.index < is_finished_.size()) is_finished_[outcome.job.index] = true;
  }
  if (!page.outcomes.empty()) ask_at_ = now + quiet_;
  if (now < ask_at_) return "";
  ask_at_ = now + pause_;
  const auto waiting = std::ranges::find(is_finished_, false);
  if (waiting == is_finished_.end()) return "";
  const JobId job{page.batch.batch, static_cast<std::uint32_t>(waiting - is_finished_.begin())};
  const auto explanation = client_.ExplainJob(job);
  if (!explanation || explanation->state != wire::JobState::kQueued) return "";
  std::string words = WithoutNumbers(explanation->reason);
  if (words == said_) return "";
  said_ = std::move(words);
  pause_ *= 2;
  return fmt::format("job {}: {}", job, Printable(explanation->reason));
}

}  // namespace loopfleet::client
