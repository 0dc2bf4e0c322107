#include "coordinator/ready_queue.h"

#include "common/base/check.h"
#include "coordinator/placement.h"

namespace loopfleet::coordinator {
namespace {

constexpr std::array kPlacements = {Placement::kCpu, Placement::kCuda, Placement::kAny};

}  // namespace

ReadyQueue::Place ReadyQueue::PushBack(JobId job, Placement placement) {
  List& list = ListOf(placement);
  list.push_back({.order = next_back_++, .job = job});
  return {.placement = placement, .entry = std::prev(list.end())};
}

ReadyQueue::Place ReadyQueue::PushFront(JobId job, Placement placement) {
  List& list = ListOf(placement);
  list.push_front({.order = next_front_--, .job = job});
  return {.placement = placement, .entry = list.begin()};
}

void ReadyQueue::Remove(Place place) { ListOf(place.placement).erase(place.entry); }

std::optional<JobId> ReadyQueue::PopFor(DeviceKind device) {
  List* first = nullptr;
  for (const Placement placement : kPlacements) {
    List& list = ListOf(placement);
    if (list.empty() || !Serves(device, placement)) continue;
    if (first == nullptr || list.front().order < first->front().order) first = &list;
  }
  if (first == nullptr) return std::nullopt;
  const JobId job = first->front().job;
  first->pop_front();
  return job;
}

std::size_t ReadyQueue::CountFor(DeviceKind device) const {
  std::size_t count = 0;
  for (const Placement placement : kPlacements) {
    if (Serves(device, placement)) count += Size(placement);
  }
  return count;
}

std::optional<JobId> ReadyQueue::Front(Placement placement) const {
  const List& list = ListOf(placement);
  if (list.empty()) return std::nullopt;
  return list.front().job;
}

void ReadyQueue::CheckInvariants() const {
  for (const List& list : lists_) {
    for (auto entry = list.begin(); entry != list.end(); ++entry) {
      LF_CHECK(entry == list.begin() || std::prev(entry)->order < entry->order,
               "job {} is out of order", entry->job);
    }
  }
}

}  // namespace loopfleet::coordinator
