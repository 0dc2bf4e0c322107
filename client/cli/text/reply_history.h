#pragma once
// Recent replies of a coordinator, from which rates are computed.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "client/cli/text/status_text.h"

namespace loopfleet::client {

// Drops the oldest beyond `most`, and everything when the coordinator has restarted.
class ReplyHistory {
 public:
  explicit ReplyHistory(std::size_t most = 60) : most_(most) {}
  void Add(FleetReplies replies);  // the events are those since the last replies
  const FleetReplies& latest() const { return moments_.back(); }
  bool empty() const { return moments_.empty(); }
  std::uint64_t last_event() const { return last_event_; }
  const std::deque<wire::FleetEvent>& events() const { return events_; }

  // Over the last few moments; 0 with fewer than two.
  double JobsPerSecond() const;
  double JobsPerSecondOf(const wire::WorkerInfo& worker) const;
  double JobsPerSecondOf(const wire::BatchInfo& batch) const;
  std::vector<double> RatePerStep() const;  // between consecutive moments, oldest first

 private:
  static constexpr std::size_t kRateMoments = 6;  // that a rate spans
  static constexpr std::size_t kMostEvents = 50;
  const FleetReplies* Earlier() const;  // the start of the rate's span
  double SecondsSince(const FleetReplies& earlier) const;

  const std::size_t most_;
  std::deque<FleetReplies> moments_;
  std::deque<wire::FleetEvent> events_;
  std::uint64_t last_event_ = 0;
};

}  // namespace loopfleet::client
