#pragma once
// The fleet at a moment, in words: the sentence that says whether it is healthy, the cards of
// `loopfleet status`, the screen of `loopfleet top`. Pure: no sockets, no terminal.

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

enum class HealthLevel : std::uint8_t { kHealthy, kWarning, kProblem };
struct FleetHealth {
  HealthLevel level = HealthLevel::kHealthy;
  std::string sentence;  // the worst that is, or that nothing is
  std::string hint;      // a command that shows or mends it; "": nothing to do
};
FleetHealth HealthOf(const FleetSnapshot& snapshot);

std::string StatusText(const FleetSnapshot& snapshot);
Json StatusJson(const FleetSnapshot& snapshot);

// One line: time, kind, what, text.
std::string EventText(const wire::FleetEvent& event);
Json EventJson(const wire::FleetEvent& event);

// The last moments of a fleet: what rates are made of. Forgets what is older than the window, and
// everything when the coordinator was restarted.
class FleetHistory {
 public:
  explicit FleetHistory(std::size_t most = 60) : most_(most) {}
  void Add(FleetSnapshot snapshot);  // its events are those since the last one
  const FleetSnapshot& latest() const { return moments_.back(); }
  bool empty() const { return moments_.empty(); }
  std::uint64_t last_event() const { return last_event_; }
  const std::deque<wire::FleetEvent>& events() const { return events_; }

  // Over the last seconds; 0 before there are two moments.
  double JobsPerSecond() const;
  double JobsPerSecondOf(const wire::WorkerInfo& worker) const;
  double JobsPerSecondOf(const wire::BatchInfo& batch) const;
  std::vector<double> RatePerStep() const;  // between each two moments, oldest first

 private:
  static constexpr std::size_t kRateMoments = 6;  // as many back as rates look
  static constexpr std::size_t kMostEvents = 50;
  const FleetSnapshot* Earlier() const;  // the moment that rates are since
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
// Lines of at most `columns` characters, at most `rows` of them; plain ASCII but for names.
std::vector<std::string> TopScreen(const FleetHistory& history, const ScreenSize& size);

// For a terminal: without bytes that it would act upon.
std::string Printable(std::string_view text);

}  // namespace loopfleet::client
