#include "coordinator/shell/job_steps.h"

#include <algorithm>
#include <ranges>

namespace loopfleet::coordinator {

void JobSteps::Add(const Tally& tally, Moment now) {
  if (!began_) began_ = Begin{.at = now.instant, .tally = tally};
  const Nanos passed = now.instant - began_->at;
  if (passed < kStep) return;
  // After a stall, spread the jobs evenly over all the steps that it lasted.
  const auto count = std::min<std::int64_t>(passed / kStep, kSteps);
  const std::uint64_t finished = tally.finished() - began_->tally.finished();
  const std::uint64_t judged = tally.judged() - began_->tally.judged();
  const std::uint64_t failed = tally.failed() - began_->tally.failed();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto share = [&](std::uint64_t total) {
      return total * static_cast<std::uint64_t>(i + 1) / static_cast<std::uint64_t>(count) -
             total * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(count);
    };
    steps_.push_back(
        {.finished = share(finished), .judged = share(judged), .failed = share(failed)});
  }
  while (steps_.size() > kSteps) steps_.pop_front();
  end_ = now.wall;
  began_ = Begin{.at = now.instant, .tally = tally};
}

JobSteps::Step JobSteps::Last(std::chrono::seconds span) const {
  Step sum;
  for (const Step& step : steps_ | std::views::reverse | std::views::take(span / kStep)) {
    sum.finished += step.finished;
    sum.judged += step.judged;
    sum.failed += step.failed;
  }
  return sum;
}

}  // namespace loopfleet::coordinator
