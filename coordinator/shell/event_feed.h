#pragma once
// EventFeed: recent events of the fleet, numbered, for `loopfleet events` and `top`. Bounded: batch
// events are kept apart from all others, so a flood of small batches does not push out the loss of
// a worker, and of the others, workers of one key push out at most half. Belongs to the event
// loop's thread.

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
    std::size_t max_batch_events = 1'000;
    std::size_t most_others = 1'000;
  };
  explicit EventFeed(const Clock& clock) : EventFeed(clock, Options{}) {}
  EventFeed(const Clock& clock, const Options& options) : options_(options), clock_(clock) {}

  // Sets the event's number and time and keeps it. An event with a batch counts as a batch event.
  void Add(wire::FleetEvent event);
  // The same, but in place of the last event of no batch, and with its count, if that is of the
  // same kind and of a worker of the same key.
  void AddToLast(wire::FleetEvent event);

  // The events after number `after`, oldest first: at most `most`, and as many as fit one message.
  std::vector<wire::FleetEvent> After(std::uint64_t after, std::size_t most) const;
  std::uint64_t last() const { return last_; }  // 0: none yet

 private:
  const Options options_;
  const Clock& clock_;
  std::uint64_t last_ = 0;
  std::deque<wire::FleetEvent> batch_events_;
  std::deque<wire::FleetEvent> others_;
};

}  // namespace loopfleet::coordinator
