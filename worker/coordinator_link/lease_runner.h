#pragma once
// LeaseRunner: what a session gives leases to and takes reports from. The pipeline is one; tests of
// the session have another. Every method returns at once and may be called from the session's
// thread while work goes on.

#include <span>
#include <vector>

#include "common/wire/message.h"

namespace loopfleet::worker {

class LeaseRunner {
 public:
  virtual ~LeaseRunner() = default;

  // False if it has as many as it can hold; the lease is not taken then.
  virtual bool Accept(wire::Lease lease) = 0;
  // Nothing will be reported for these, nor run if it has not started.
  virtual void Drop(std::span<const LeaseId> leases) = 0;
  // Drops everything that is not being timed at this moment, and tells what that was.
  virtual std::vector<LeaseId> DropUnstarted() = 0;
  // Drops what nothing was done about yet of these, and tells what that was.
  virtual std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) = 0;
  virtual std::vector<wire::Report> TakeFinished() = 0;
  // Accepted, not dropped, and not yet taken as finished.
  virtual std::vector<wire::HeldLease> Held() const = 0;
};

}  // namespace loopfleet::worker
