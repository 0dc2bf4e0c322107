#pragma once
// LeaseBook: the leases that a worker holds and the state of each: waiting, being timed, or
// finished and not yet collected. Used by every kind of pipeline. Safe from any thread.
//
// A dropped lease is forgotten: its job is not started, and nothing is reported for it.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/wire/message.h"

namespace loopfleet::worker {

class LeaseBook {
 public:
  struct Waiting {
    wire::Lease lease;
    Instant accepted_at;
  };
  // `max_held`: the most leases held at once, waiting ones included.
  explicit LeaseBook(std::size_t max_held) : max_held_(max_held) {}

  // As in LeaseRunner.
  bool Accept(wire::Lease lease, Instant now);
  void Drop(std::span<const LeaseId> leases);
  std::vector<LeaseId> DropUnstarted();
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases);
  std::vector<wire::Report> TakeFinished();
  std::vector<wire::HeldLease> Held() const;
  std::size_t CountUnfinished() const;  // of those held

  // Waits until Next would not. False: it still would after `limit`.
  bool AwaitNext(Nanos limit);
  // Waits for the next lease. nullopt: Stop was called.
  std::optional<Waiting> Next();
  // Further waiting leases for which `wanted` holds, at most `most`, in their order. Never blocks.
  std::vector<Waiting> TakeWaiting(const std::function<bool(const wire::Lease&)>& wanted,
                                   std::size_t most);
  bool IsHeld(LeaseId lease) const;
  // Marks the lease as being timed, so that a drain no longer returns it. Called once per
  // measurement round. False: the lease was dropped.
  bool Start(LeaseId lease);
  // False: the lease was dropped, and the report is discarded.
  bool Finish(wire::Report report);
  // Drops every lease; Next then returns nullopt.
  void Stop();

 private:
  const std::size_t max_held_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<Waiting> waiting_;
  std::map<LeaseId, JobId> held_;
  std::set<LeaseId> started_;
  std::vector<wire::Report> finished_;  // their leases stay in held_ until these are taken
};

}  // namespace loopfleet::worker
