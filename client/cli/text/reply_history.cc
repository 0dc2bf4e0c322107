#include "client/cli/text/reply_history.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace loopfleet::client {

void ReplyHistory::Add(FleetReplies replies) {
  if (!moments_.empty() && moments_.back().fleet.epoch != replies.fleet.epoch) {
    moments_.clear();
    events_.clear();
  }
  for (wire::FleetEvent& event : replies.fleet.events) {
    last_event_ = event.sequence;
    events_.push_back(std::move(event));
    if (events_.size() > kMostEvents) events_.pop_front();
  }
  if (replies.fleet.last_event < last_event_) last_event_ = 0;  // restarted, without events yet
  replies.fleet.events.clear();
  moments_.push_back(std::move(replies));
  if (moments_.size() > most_) moments_.pop_front();
}

const FleetReplies* ReplyHistory::Earlier() const {
  if (moments_.size() < 2) return nullptr;
  return &moments_[moments_.size() - std::min(moments_.size(), kRateMoments)];
}

double ReplyHistory::SecondsSince(const FleetReplies& earlier) const {
  return std::chrono::duration<double>(latest().fleet.now - earlier.fleet.now).count();
}

double ReplyHistory::JobsPerSecond() const {
  const FleetReplies* earlier = Earlier();
  if (earlier == nullptr || SecondsSince(*earlier) <= 0) return 0;
  return static_cast<double>(latest().fleet.finished_jobs - earlier->fleet.finished_jobs) /
         SecondsSince(*earlier);
}

double ReplyHistory::JobsPerSecondOf(const wire::WorkerInfo& worker) const {
  const FleetReplies* earlier = Earlier();
  if (earlier == nullptr || SecondsSince(*earlier) <= 0) return 0;
  const auto& then = earlier->workers.workers;
  const auto before = std::ranges::find(then, worker.worker, &wire::WorkerInfo::worker);
  if (before == then.end() || before->finished_jobs > worker.finished_jobs) return 0;
  return static_cast<double>(worker.finished_jobs - before->finished_jobs) / SecondsSince(*earlier);
}

double ReplyHistory::JobsPerSecondOf(const wire::BatchInfo& batch) const {
  const FleetReplies* earlier = Earlier();
  if (earlier == nullptr || SecondsSince(*earlier) <= 0) return 0;
  const auto& then = earlier->batches.batches;
  const auto before = std::ranges::find(then, batch.batch, &wire::BatchInfo::batch);
  const std::uint32_t done = before == then.end() ? 0 : before->finished;
  return static_cast<double>(batch.finished - std::min(done, batch.finished)) /
         SecondsSince(*earlier);
}

std::vector<double> ReplyHistory::RatePerStep() const {
  std::vector<double> rates;
  for (std::size_t i = 1; i < moments_.size(); ++i) {
    const auto& before = moments_[i - 1].fleet;
    const auto& after = moments_[i].fleet;
    const double seconds = std::chrono::duration<double>(after.now - before.now).count();
    rates.push_back(seconds > 0
                        ? static_cast<double>(after.finished_jobs - before.finished_jobs) / seconds
                        : 0);
  }
  return rates;
}

}  // namespace loopfleet::client
