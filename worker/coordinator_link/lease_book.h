#pragma once
// LeaseBook: which leases a worker holds and what became of them, for every kind of pipeline: what
// waits, what is on the device now, what is finished and not yet taken. Safe from any thread.
//
// A lease that is dropped is nobody's business any more: its job is not started, and nothing is
// reported for it.

#include <condition_variable>
#include <cstddef>
#include <deque>
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
  // `max_held`: leases at once, waiting ones included.
  explicit LeaseBook(std::size_t max_held) : max_held_(max_held) {}

  // As LeaseRunner has them.
  bool Accept(wire::Lease lease, Instant now);
  void Drop(std::span<const LeaseId> leases);
  std::vector<LeaseId> DropUnstarted();
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases);
  std::vector<wire::Report> TakeFinished();
  std::vector<wire::HeldLease> Held() const;
  std::size_t CountUnfinished() const;  // of those held

  // Waits for the next one. Empty: Stop was called.
  std::optional<Waiting> Next();
  bool IsHeld(LeaseId lease) const;
  // From here on it is being timed, and no drain gives it back. Once for each look at a kernel.
  // False: it was dropped.
  bool Start(LeaseId lease);
  // False: it was dropped meanwhile, and nobody wants the report.
  bool Finish(wire::Report report);
  // Forgets all that is held; Next gives nothing more.
  void Stop();

 private:
  const std::size_t max_held_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<Waiting> waiting_;
  std::map<LeaseId, JobId> held_;
  std::set<LeaseId> started_;
  std::vector<wire::Report> finished_;  // their leases are in held_ until they are taken
};

}  // namespace loopfleet::worker
