#include "coordinator/shell/event_feed.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::coordinator {

void EventFeed::Add(wire::FleetEvent event) {
  event.sequence = ++last_;
  event.at = clock_.WallNow();
  auto& kept = event.batch ? batch_events_ : others_;
  kept.push_back(std::move(event));
  if (kept.size() > (&kept == &batch_events_ ? options_.max_batch_events : options_.most_others)) {
    kept.pop_front();
  }
}

std::vector<wire::FleetEvent> EventFeed::After(std::uint64_t after, std::size_t most) const {
  constexpr std::size_t kRoom = wire::kMaxMessageBytes / 2;  // the rest of the reply is small
  const auto begin_of = [&](const std::deque<wire::FleetEvent>& events) {
    return std::ranges::upper_bound(events, after, {}, &wire::FleetEvent::sequence);
  };
  std::vector<wire::FleetEvent> found;
  auto batch = begin_of(batch_events_);
  auto other = begin_of(others_);
  std::size_t bytes = 0;
  while (found.size() < most && (batch != batch_events_.end() || other != others_.end())) {
    const bool is_batch = other == others_.end() ||
                          (batch != batch_events_.end() && batch->sequence < other->sequence);
    auto& next = is_batch ? batch : other;
    bytes += wire::EncodedSize(*next);
    if (bytes > kRoom) break;
    found.push_back(*next++);
  }
  return found;
}

}  // namespace loopfleet::coordinator
