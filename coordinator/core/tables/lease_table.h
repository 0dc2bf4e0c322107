#pragma once
// LeaseTable: every permission to run a job that is out, and every report that is not on disk yet.
//
// Invariant: a kRunning lease belongs to a job that is Leased under it and to a worker that lists
// it as running; a kReported one waits for its outcome to become durable, and its job has left the
// JobTable. Ids are never given out twice, over restarts too: the boot epoch is in the upper 24
// bits, of which the first one says that the job was lent: a worker that comes back with it,
// whatever became of this process meanwhile, has it lent.

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"

namespace loopfleet::coordinator {

enum class LeaseStage : std::uint8_t { kRunning, kReported };

// kLent: to a worker in quarantine (lending.h).
enum class Terms : bool { kTrusted, kLent };
inline constexpr std::uint64_t kLentBit = std::uint64_t{1} << 63;
constexpr Terms TermsOf(LeaseId lease) {
  return (lease.value & kLentBit) != 0 ? Terms::kLent : Terms::kTrusted;
}

struct LeaseRecord {
  LeaseId id;
  JobId job;
  Uuid worker;  // its incarnation: a restarted daemon is another one
  Instant granted_at{};
  LeaseStage stage = LeaseStage::kRunning;
  bool was_held = false;  // the worker was heard to have it
};

class LeaseTable {
 public:
  void StartEpoch(std::uint64_t epoch);
  LeaseRecord& Grant(JobId job, const Uuid& worker, Instant now, Terms terms);
  // Whether this id can have been given out, by this run or an earlier one.
  bool WasGranted(LeaseId lease) const;
  bool IsOfThisRun(LeaseId lease) const;
  // Takes over a lease that was granted earlier, perhaps by an earlier run.
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
  std::uint64_t last() const;  // the number of the last one, whatever its terms

  std::unordered_map<LeaseId, LeaseRecord> leases_;  // looked up, never iterated by transitions
  std::uint64_t epoch_ = 0;
  std::uint64_t counter_ = 0;
};

}  // namespace loopfleet::coordinator
