#pragma once
// EventFeed: what happened to the fleet lately, numbered, for `loopfleet events` and `top`.
// Bounded: the latest events of batches, and apart from them the latest of everything else, so that
// a flood of small batches does not drown the worker that was lost. Belongs to the event loop's
// thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/job/ids.h"
#include "common/wire/message.h"

namespace loopfleet::coordinator {

class EventFeed {
 public:
  struct Options {
    std::size_t most_of_batches = 1'000;
    std::size_t most_others = 1'000;
  };
  explicit EventFeed(const Clock& clock) : EventFeed(clock, Options{}) {}
  EventFeed(const Clock& clock, const Options& options) : options_(options), clock_(clock) {}

  // Kept as it is, but for its number and its time. Those with a batch are of batches.
  void Add(wire::FleetEvent event);

  // Those after `after`, oldest first: at most `most`, and what fits a message.
  std::vector<wire::FleetEvent> After(std::uint64_t after, std::size_t most) const;
  std::uint64_t last() const { return last_; }  // 0: none yet

 private:
  const Options options_;
  const Clock& clock_;
  std::uint64_t last_ = 0;
  std::deque<wire::FleetEvent> of_batches_;
  std::deque<wire::FleetEvent> others_;
};

}  // namespace loopfleet::coordinator
