#include "coordinator/core/tables/affinity_table.h"

#include "common/base/check.h"

namespace loopfleet::coordinator {

Uuid AffinityTable::WorkerOf(const std::string& affinity) const {
  const auto entry = entries_.find(affinity);
  return entry == entries_.end() ? Uuid{} : entry->second.worker;
}

std::vector<JobId> AffinityTable::WaitingWith(const std::string& affinity) const {
  const auto entry = entries_.find(affinity);
  if (entry == entries_.end()) return {};
  return {entry->second.waiting.begin(), entry->second.waiting.end()};
}

AffinityTable::Entries::iterator AffinityTable::Use(const std::string& affinity,
                                                    std::size_t max_affinities) {
  const auto [entry, is_new] = entries_.try_emplace(affinity);
  if (!is_new) idle_.erase(entry->second.used);
  entry->second.used = ++uses_;
  while (entries_.size() > max_affinities && !idle_.empty()) {
    const std::string oldest = idle_.begin()->second;
    Release(oldest);  // no jobs wait for it, so its entry goes with the binding
  }
  return entry;
}

void AffinityTable::Settle(Entries::iterator entry) {
  if (!entry->second.waiting.empty()) return;
  if (entry->second.worker.is_nil()) {
    idle_.erase(entry->second.used);
    entries_.erase(entry);
  } else {
    idle_[entry->second.used] = entry->first;
  }
}

void AffinityTable::StartWaiting(const std::string& affinity, JobId job,
                                 std::size_t max_affinities) {
  const auto entry = Use(affinity, max_affinities);
  LF_CHECK(entry->second.waiting.insert(job).second, "job {} waits already", job);
}

void AffinityTable::StopWaiting(const std::string& affinity, JobId job) {
  const auto entry = entries_.find(affinity);
  LF_CHECK(entry != entries_.end() && entry->second.waiting.erase(job) == 1, "job {} does not wait",
           job);
  Settle(entry);
}

void AffinityTable::Bind(const std::string& affinity, const Uuid& worker,
                         std::size_t max_affinities) {
  const auto entry = Use(affinity, max_affinities);
  if (entry->second.worker.is_nil()) {
    ++changes_;
    entry->second.worker = worker;
    bound_[worker].insert(affinity);
  }
  LF_CHECK(entry->second.worker == worker, "affinity '{}' is bound to another worker", affinity);
  Settle(entry);
}

void AffinityTable::Release(const std::string& affinity) {
  const auto entry = entries_.find(affinity);
  if (entry == entries_.end() || entry->second.worker.is_nil()) return;
  ++changes_;
  const auto bound = bound_.find(entry->second.worker);
  bound->second.erase(affinity);
  if (bound->second.empty()) bound_.erase(bound);
  entry->second.worker = {};
  Settle(entry);
}

std::vector<Uuid> AffinityTable::Workers() const {
  std::vector<Uuid> workers;
  for (const auto& [worker, affinities] : bound_) workers.push_back(worker);
  return workers;
}

std::vector<std::string> AffinityTable::BoundTo(const Uuid& worker) const {
  const auto bound = bound_.find(worker);
  if (bound == bound_.end()) return {};
  return {bound->second.begin(), bound->second.end()};
}

void AffinityTable::CheckInvariants() const {
  std::size_t bound = 0;
  std::size_t idle = 0;
  for (const auto& [affinity, entry] : entries_) {
    LF_CHECK(!entry.waiting.empty() || !entry.worker.is_nil(), "affinity '{}' says nothing",
             affinity);
    const auto among = idle_.find(entry.used);
    const bool is_idle = among != idle_.end() && among->second == affinity;
    LF_CHECK(is_idle == entry.waiting.empty(), "affinity '{}' is idle, or not", affinity);
    if (is_idle) ++idle;
    if (entry.worker.is_nil()) continue;
    ++bound;
    LF_CHECK(bound_.at(entry.worker).contains(affinity), "affinity '{}' is bound elsewhere",
             affinity);
  }
  LF_CHECK(idle == idle_.size(), "{} affinities are idle", idle_.size());
  for (const auto& [worker, affinities] : bound_) bound -= affinities.size();
  LF_CHECK(bound == 0, "{} affinities are bound and not listed", bound);
}

}  // namespace loopfleet::coordinator
