#pragma once
// LeaseTable: every lease (permission to run a job) that is out, and every report that is not on
// disk yet.
//
// Invariant: a kRunning lease belongs to a job that is Leased under it and to a worker that lists
// it as running; a kReported one waits for its outcome to become durable, and its job has left the
// JobTable. Ids are never reused, even over restarts: the boot epoch is in the upper 24 bits.

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"

namespace loopfleet::coordinator {

enum class LeaseStage : std::uint8_t { kRunning, kReported };

struct LeaseRecord {
  LeaseId id;
  JobId job;
  Uuid worker;  // its incarnation: a restarted daemon has another id
  Instant granted_at{};
  LeaseStage stage = LeaseStage::kRunning;
  bool was_held = false;    // the worker confirmed that it has it
  bool is_adopted = false;  // granted earlier than granted_at, at an unknown time
};

class LeaseTable {
 public:
  void StartEpoch(std::uint64_t epoch);
  LeaseRecord& Grant(JobId job, const Uuid& worker, Instant now);
  LeaseId last() const;  // of this run; ids ascend
  // Whether this id may have been granted, by this run or an earlier one.
  bool WasGranted(LeaseId lease) const;
  bool IsOfThisRun(LeaseId lease) const;
  // Enters a lease that was granted earlier, perhaps by an earlier run.
  LeaseRecord& Adopt(LeaseId lease, JobId job, const Uuid& worker, Instant now);
  LeaseRecord* Find(LeaseId lease);
  const LeaseRecord* Find(LeaseId lease) const;
  void Remove(LeaseId lease);
  std::size_t size() const { return leases_.size(); }

  // For CheckInvariants: in no particular order.
  template <class Visit>
  void ForEachUnordered(const Visit& visit) const {
    for (const auto& [id, lease] : leases_) visit(lease);
  }

 private:
  std::unordered_map<LeaseId, LeaseRecord> leases_;  // looked up, never iterated by transitions
  std::uint64_t epoch_ = 0;
  std::uint64_t counter_ = 0;
};

}  // namespace loopfleet::coordinator
