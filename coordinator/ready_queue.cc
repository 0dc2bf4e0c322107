#include "coordinator/ready_queue.h"

#include <iterator>

#include "common/base/check.h"

namespace loopfleet::coordinator {

ReadyQueue::Place ReadyQueue::PushBack(JobId job, const Demand& demand) {
  List& list = lists_[demand];
  list.push_back({.order = next_back_++, .job = job});
  return {.demand = demand, .entry = std::prev(list.end())};
}

ReadyQueue::Place ReadyQueue::PushFront(JobId job, const Demand& demand) {
  List& list = lists_[demand];
  list.push_front({.order = next_front_--, .job = job});
  return {.demand = demand, .entry = list.begin()};
}

void ReadyQueue::Remove(const Place& place) {
  const auto list = lists_.find(place.demand);
  LF_CHECK(list != lists_.end(), "no job demands what job {} does", place.entry->job);
  list->second.erase(place.entry);
  if (list->second.empty()) lists_.erase(list);
}

std::optional<JobId> ReadyQueue::PopFor(const Supply& supply) {
  auto first = lists_.end();
  for (auto list = lists_.begin(); list != lists_.end(); ++list) {
    if (!Serves(supply, list->first)) continue;
    if (first == lists_.end() || list->second.front().order < first->second.front().order) {
      first = list;
    }
  }
  if (first == lists_.end()) return std::nullopt;
  const JobId job = first->second.front().job;
  first->second.pop_front();
  if (first->second.empty()) lists_.erase(first);
  return job;
}

std::size_t ReadyQueue::CountFor(DeviceKind device) const {
  std::size_t count = 0;
  for (const auto& [demand, list] : lists_) {
    if (Serves(device, demand.placement)) count += list.size();
  }
  return count;
}

std::optional<JobId> ReadyQueue::Front(const Demand& demand) const {
  const auto list = lists_.find(demand);
  if (list == lists_.end()) return std::nullopt;
  return list->second.front().job;
}

std::size_t ReadyQueue::Size(Placement placement) const {
  std::size_t count = 0;
  for (const auto& [demand, list] : lists_) {
    if (demand.placement == placement) count += list.size();
  }
  return count;
}

std::size_t ReadyQueue::size() const {
  std::size_t count = 0;
  for (const auto& [demand, list] : lists_) count += list.size();
  return count;
}

void ReadyQueue::CheckInvariants() const {
  for (const auto& [demand, list] : lists_) {
    LF_CHECK(!list.empty(), "an empty list of jobs for {} threads", demand.threads);
    for (auto entry = list.begin(); entry != list.end(); ++entry) {
      LF_CHECK(entry == list.begin() || std::prev(entry)->order < entry->order,
               "job {} is out of order", entry->job);
    }
  }
}

}  // namespace loopfleet::coordinator
