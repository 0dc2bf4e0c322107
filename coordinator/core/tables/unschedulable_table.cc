#include "coordinator/core/tables/unschedulable_table.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

void UnschedulableTable::Note(const Demand& demand, bool is_new, Instant now) {
  if (is_new) new_.insert_or_assign(demand, now);
  if (const auto entry = unserved_.find(demand); entry != unserved_.end()) {
    entry->second.next_look = now;
  }
}

void UnschedulableTable::LookAt(const Demand& demand, const WorkerRegistry& workers,
                                Instant since) {
  ++looks_;
  if (workers.IsServed(demand)) {
    unserved_.erase(demand);
  } else {
    unserved_.try_emplace(demand, Entry{.since = since});
  }
}

std::map<Demand, UnschedulableTable::Entry>& UnschedulableTable::Look(const WorkerRegistry& workers,
                                                                      const ReadyQueue& ready,
                                                                      Instant now) {
  std::erase_if(unserved_, [&](const auto& entry) { return !ready.Has(entry.first); });
  for (const auto& [demand, since] : new_) {
    if (ready.Has(demand)) LookAt(demand, workers, since);
  }
  if (std::exchange(changes_, workers.changes()) != workers.changes()) {
    for (const Demand& demand : ready.Demands()) {
      if (!new_.contains(demand)) LookAt(demand, workers, looked_at_);
    }
  }
  new_.clear();
  looked_at_ = now;
  return unserved_;
}

void UnschedulableTable::CheckInvariants(const WorkerRegistry& workers,
                                         const ReadyQueue& ready) const {
  if (changes_ != workers.changes()) return;
  for (const Demand& demand : ready.Demands()) {
    if (new_.contains(demand)) continue;
    LF_CHECK(unserved_.contains(demand) != workers.IsServed(demand),
             "a demand that {} is not known to be so",
             workers.IsServed(demand) ? "is served" : "nobody serves");
  }
}

Instant UnschedulableTable::SinceOf(const Demand& demand, Instant now) const {
  const auto entry = unserved_.find(demand);
  return entry == unserved_.end() ? now : entry->second.since;
}

}  // namespace loopfleet::coordinator
