#pragma once
// The fleet as text: what needs attention, the lines of `loopfleet status`, the screen of
// `loopfleet top`. Pure: no sockets, no terminal.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "client/outcome_json.h"
#include "common/wire/message.h"

namespace loopfleet::client {

struct FleetSnapshot {
  wire::FleetInfo fleet;
  wire::WorkerList workers;
  wire::BatchList batches;  // the newest ones, newest first
};

std::string StatusText(const FleetSnapshot& snapshot);
Json StatusJson(const FleetSnapshot& snapshot);

// One line: time, kind, subject, text.
std::string EventText(const wire::FleetEvent& event);
Json EventJson(const wire::FleetEvent& event);

// Recent snapshots of a fleet, from which rates are computed. Drops the oldest beyond `most`, and
// everything when the coordinator has restarted.
class FleetHistory {
 public:
  explicit FleetHistory(std::size_t most = 60) : most_(most) {}
  void Add(FleetSnapshot snapshot);  // its events are those since the last snapshot
  const FleetSnapshot& latest() const { return moments_.back(); }
  bool empty() const { return moments_.empty(); }
  std::uint64_t last_event() const { return last_event_; }
  const std::deque<wire::FleetEvent>& events() const { return events_; }

  // Over the last few snapshots; 0 with fewer than two.
  double JobsPerSecond() const;
  double JobsPerSecondOf(const wire::WorkerInfo& worker) const;
  double JobsPerSecondOf(const wire::BatchInfo& batch) const;
  std::vector<double> RatePerStep() const;  // between consecutive snapshots, oldest first

 private:
  static constexpr std::size_t kRateMoments = 6;  // snapshots that a rate spans
  static constexpr std::size_t kMostEvents = 50;
  const FleetSnapshot* Earlier() const;  // the start of the rate's span
  double SecondsSince(const FleetSnapshot& earlier) const;

  const std::size_t most_;
  std::deque<FleetSnapshot> moments_;
  std::deque<wire::FleetEvent> events_;
  std::uint64_t last_event_ = 0;
};

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};
// At most `rows` lines of at most `columns` characters; plain ASCII except names.
std::vector<std::string> TopScreen(const FleetHistory& history, const ScreenSize& size);

}  // namespace loopfleet::client
