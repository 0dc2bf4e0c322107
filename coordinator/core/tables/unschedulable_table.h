#pragma once
// UnschedulableTable: the demands of waiting jobs that no worker can meet, each with the time since
// when. A demand is checked when jobs begin to wait with it, and when a worker joined, left or
// changed. So a tick does not have to check a thousand demands against a thousand workers.

#include <cstdint>
#include <map>

#include "common/base/clock.h"
#include "coordinator/core/rules/placement.h"
#include "coordinator/core/tables/ready_queue.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

class UnschedulableTable {
 public:
  struct Entry {
    Instant since{};      // no worker could meet it
    Instant next_look{};  // for jobs that have waited too long; there are none earlier
  };

  // A job begins to wait with this demand. `is_new`: no other job waits with it.
  void Note(const Demand& demand, bool is_new, Instant now);
  // To be called once a tick. Returns the unschedulable demands as of now.
  std::map<Demand, Entry>& Look(const WorkerRegistry& workers, const ReadyQueue& ready,
                                Instant now);
  // The time since when no worker can meet it; `now` if one can, or if that was not checked yet.
  Instant SinceOf(const Demand& demand, Instant now) const;

  // Aborts if what is known of a demand is wrong, unless that demand is still to be checked.
  void CheckInvariants(const WorkerRegistry& workers, const ReadyQueue& ready) const;

  // How often a demand was checked against the workers.
  std::uint64_t looks() const { return looks_; }

 private:
  void LookAt(const Demand& demand, const WorkerRegistry& workers, Instant since);

  std::map<Demand, Entry> unserved_;
  std::map<Demand, Instant> new_;  // since the last Look: when jobs began to wait with it
  Instant looked_at_{};
  std::uint64_t changes_ = 0;  // of the registry, at the last Look
  std::uint64_t looks_ = 0;
};

}  // namespace loopfleet::coordinator
