#pragma once
// LeaseRunner: takes leases from a Protocol and gives it their reports. Implemented by the pipeline
// and by test doubles. Every method returns at once and may be called from the connection's thread
// while jobs run.

#include <span>
#include <variant>
#include <vector>

#include "common/wire/message.h"

namespace loopfleet::worker {

using BlobQuestion = std::variant<wire::BlobWanted, wire::BlobPiece>;
using BlobAnswer = std::variant<wire::BlobPiece, wire::WorkerBlobHeld>;

class LeaseRunner {
 public:
  virtual ~LeaseRunner() = default;

  // False if it already holds its maximum; the lease is not accepted then.
  virtual bool Accept(wire::Lease lease) = 0;
  // Nothing is reported for these leases, and those not started are not run.
  virtual void Drop(std::span<const LeaseId> leases) = 0;
  // Drops every lease that is not being timed at this moment; returns the dropped ones.
  virtual std::vector<LeaseId> DropUnstarted() = 0;
  // Drops those of `leases` on which no work has begun; returns the dropped ones.
  virtual std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) = 0;
  virtual std::vector<wire::Report> TakeFinished() = 0;
  // Accepted, not dropped, and not yet taken as finished.
  virtual std::vector<wire::HeldLease> Held() const = 0;
  // Questions to the store about machine code, for runners that have some. Each gets one Answer.
  virtual std::vector<wire::CodeLookup> TakeCodeLookups() { return {}; }
  virtual void Answer(wire::CodeLookupAnswer) {}
  // Questions for blobs that the coordinator keeps, and pieces for it to keep, likewise. A lost one
  // is sent again.
  virtual std::vector<BlobQuestion> TakeBlobQuestions() { return {}; }
  virtual void AnswerBlob(const BlobAnswer&) {}
};

}  // namespace loopfleet::worker
