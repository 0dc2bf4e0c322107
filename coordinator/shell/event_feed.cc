#include "coordinator/shell/event_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::coordinator {
namespace {

// Names of workers begin with that of their key and a slash (identity.h), if there are keys.
std::string_view KeyOf(const wire::FleetEvent& event) {
  return std::string_view(event.subject).substr(0, event.subject.find('/'));
}

bool IsOfKey(const wire::FleetEvent& event, std::string_view key) {
  return event.subject.starts_with(key) &&
         (event.subject.size() == key.size() || event.subject[key.size()] == '/');
}

}  // namespace

void EventFeed::Add(wire::FleetEvent event) {
  event.sequence = ++last_;
  event.at = clock_.WallNow();
  if (event.batch) {
    batch_events_.push_back(std::move(event));
    if (batch_events_.size() > options_.max_batch_events) batch_events_.pop_front();
    return;
  }
  others_.push_back(std::move(event));
  if (others_.size() <= options_.most_others) return;
  const auto is_of_its_key = [key = KeyOf(others_.back())](const wire::FleetEvent& other) {
    return IsOfKey(other, key);
  };
  const auto of_its_key = static_cast<std::size_t>(std::ranges::count_if(others_, is_of_its_key));
  others_.erase(of_its_key > options_.most_others / 2 ? std::ranges::find_if(others_, is_of_its_key)
                                                      : others_.begin());
}

void EventFeed::AddToLast(wire::FleetEvent event) {
  if (!others_.empty() && others_.back().kind == event.kind &&
      IsOfKey(others_.back(), KeyOf(event))) {
    event.count += others_.back().count;
    event.text = fmt::format("{} times", event.count);
    others_.pop_back();
  }
  Add(std::move(event));
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
