#include "worker/coordinator_link/lease_book.h"

#include <algorithm>
#include <utility>

namespace loopfleet::worker {

bool LeaseBook::Accept(wire::Lease lease, Instant now) {
  std::lock_guard lock(mutex_);
  if (held_.size() >= max_held_) return false;
  if (!held_.emplace(lease.lease, lease.job).second) return true;  // a duplicate: already accepted
  waiting_.push_back({std::move(lease), now});
  changed_.notify_all();
  return true;
}

void LeaseBook::Drop(std::span<const LeaseId> leases) {
  std::lock_guard lock(mutex_);
  for (const LeaseId lease : leases) {
    held_.erase(lease);
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.lease.lease == lease; });
    std::erase_if(finished_, [&](const wire::Report& report) { return report.lease == lease; });
  }
}

std::vector<LeaseId> LeaseBook::DropUnstarted() {
  std::lock_guard lock(mutex_);
  waiting_.clear();
  std::vector<LeaseId> dropped;
  for (const auto& [lease, job] : held_) {
    const bool is_finished = std::any_of(finished_.begin(), finished_.end(),
                                         [&](const auto& report) { return report.lease == lease; });
    if (!started_.contains(lease) && !is_finished) dropped.push_back(lease);
  }
  for (const LeaseId lease : dropped) held_.erase(lease);
  return dropped;
}

std::vector<LeaseId> LeaseBook::GiveBack(std::span<const LeaseId> leases) {
  std::lock_guard lock(mutex_);
  std::vector<LeaseId> dropped;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const LeaseId lease = waiting.lease.lease;
    if (std::ranges::find(leases, lease) == leases.end() || held_.erase(lease) == 0) return false;
    dropped.push_back(lease);
    return true;
  });
  return dropped;
}

std::vector<wire::Report> LeaseBook::TakeFinished() {
  std::lock_guard lock(mutex_);
  for (const wire::Report& report : finished_) held_.erase(report.lease);
  return std::exchange(finished_, {});
}

std::vector<wire::HeldLease> LeaseBook::Held() const {
  std::lock_guard lock(mutex_);
  std::vector<wire::HeldLease> held;
  for (const auto& [lease, job] : held_) held.push_back({.lease = lease, .job = job});
  return held;
}

std::size_t LeaseBook::CountUnfinished() const {
  std::lock_guard lock(mutex_);
  std::size_t unfinished = held_.size();
  for (const wire::Report& report : finished_) unfinished -= held_.count(report.lease);
  return unfinished;
}

bool LeaseBook::AwaitNext(Nanos limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return stopping_ || !waiting_.empty(); });
}

std::optional<LeaseBook::Waiting> LeaseBook::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
  if (stopping_) return std::nullopt;
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

std::vector<LeaseBook::Waiting> LeaseBook::TakeWaiting(
    const std::function<bool(const wire::Lease&)>& wanted, std::size_t most) {
  std::lock_guard lock(mutex_);
  std::vector<Waiting> taken;
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (taken.size() >= most || !wanted(waiting.lease)) return false;
    taken.push_back(std::move(waiting));
    return true;
  });
  return taken;
}

bool LeaseBook::IsHeld(LeaseId lease) const {
  std::lock_guard lock(mutex_);
  return held_.contains(lease);
}

bool LeaseBook::Start(LeaseId lease) {
  std::lock_guard lock(mutex_);
  if (!held_.contains(lease)) {
    started_.erase(lease);  // dropped between two rounds
    return false;
  }
  started_.insert(lease);
  return true;
}

bool LeaseBook::Finish(wire::Report report) {
  std::lock_guard lock(mutex_);
  started_.erase(report.lease);
  if (!held_.contains(report.lease)) return false;
  finished_.push_back(std::move(report));
  return true;
}

void LeaseBook::Stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  waiting_.clear();
  held_.clear();
  changed_.notify_all();
}

}  // namespace loopfleet::worker
