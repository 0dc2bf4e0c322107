#include "coordinator/page/fleet_history.h"

#include <algorithm>
#include <ranges>

namespace loopfleet::coordinator {

void FleetHistory::Push(std::deque<Mark>& marks, Mark mark) {
  marks.push_back(mark);
  // Keep one mark from before the span, so the rate covers at least the whole span.
  while (marks.size() > 2 && mark.at - marks[1].at >= kRateSpan) marks.pop_front();
}

std::optional<double> FleetHistory::RateOf(const std::deque<Mark>& marks) {
  if (marks.size() < 2) return std::nullopt;
  const double seconds = std::chrono::duration<double>(marks.back().at - marks.front().at).count();
  if (seconds <= 0) return std::nullopt;
  return static_cast<double>(marks.back().finished - marks.front().finished) / seconds;
}

void FleetHistory::Add(const FleetSnapshot& snapshot,
                       const std::vector<storage::StoredBatch>& batches) {
  const Instant now = snapshot.at.instant;
  if (!marks_.empty() && marks_.back().at == now) return;  // already added
  Push(marks_, {.at = now, .finished = snapshot.tally.finished()});
  client_names_ = snapshot.client_names;

  std::map<BatchId, std::deque<Mark>> shown;
  for (const storage::StoredBatch& batch : batches) {
    auto node = batch_marks_.extract(batch.batch);
    std::deque<Mark>& marks = shown[batch.batch];
    if (!node.empty()) marks = std::move(node.mapped());
    Push(marks, {.at = now, .finished = batch.finished});
  }
  batch_marks_ = std::move(shown);

  if (now - canaries_at_ >= JobSteps::kStep) {
    canaries_at_ = now;
    AddCanaries(snapshot);
  }
}

std::string FleetHistory::NameOf(const Uuid& client) const {
  constexpr std::size_t kShownDigits = 12;
  if (client.is_nil()) return "coordinator";
  if (client_names_ != nullptr) {
    if (const auto found = client_names_->find(client); found != client_names_->end()) {
      return found->second;
    }
  }
  return client.ToString().substr(0, kShownDigits);
}

void FleetHistory::AddCanaries(const FleetSnapshot& snapshot) {
  std::map<Uuid, std::deque<Canary>> kept;
  for (const wire::WorkerInfo& worker : snapshot.fleet.workers | std::views::take(kMaxWorkers)) {
    auto node = canaries_.extract(worker.worker);
    std::deque<Canary>& canaries = kept[worker.worker];
    if (!node.empty()) canaries = std::move(node.mapped());
    const bool is_gone = worker.state == wire::WorkerState::kLost;
    if (worker.canary_ratio > 0 && !is_gone) {
      canaries.push_back({.at = snapshot.at.wall, .ratio = worker.canary_ratio});
    }
    while (canaries.size() > JobSteps::kSteps) canaries.pop_front();
  }
  canaries_ = std::move(kept);
}

double FleetHistory::JobsPerSecond() const { return RateOf(marks_).value_or(0); }

std::optional<double> FleetHistory::JobsPerSecond(BatchId batch) const {
  const auto found = batch_marks_.find(batch);
  return found == batch_marks_.end() ? std::nullopt : RateOf(found->second);
}

const std::deque<FleetHistory::Canary>& FleetHistory::CanariesOf(const Uuid& worker) const {
  static const std::deque<Canary> kNone;
  const auto found = canaries_.find(worker);
  return found == canaries_.end() ? kNone : found->second;
}

}  // namespace loopfleet::coordinator
