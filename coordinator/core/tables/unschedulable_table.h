#pragma once
// UnschedulableTable: the demands that jobs wait with and that no worker could serve, each since
// when. Whether one is served is looked at when jobs begin to wait with it, and again when a worker
// came, went or became something else: a thousand demands times a thousand workers are not looked
// at in each tick.

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
    Instant since{};      // nobody could serve it
    Instant next_look{};  // for jobs that have waited too long; before, there are none
  };

  // A job begins to wait with this demand; `is_new`: no other one does.
  void Note(const Demand& demand, bool is_new, Instant now);
  // Once a tick. The unserved ones from now on.
  std::map<Demand, Entry>& Look(const WorkerRegistry& workers, const ReadyQueue& ready,
                                Instant now);
  // Since when nobody could; `now` if somebody can, or that was not looked at yet.
  Instant SinceOf(const Demand& demand, Instant now) const;

  // What is known of each demand is so, unless it is still to be looked at. Aborts otherwise.
  void CheckInvariants(const WorkerRegistry& workers, const ReadyQueue& ready) const;

  // How many demands were looked for a worker for.
  std::uint64_t looks() const { return looks_; }

 private:
  void LookAt(const Demand& demand, const WorkerRegistry& workers, Instant since);

  std::map<Demand, Entry> unserved_;
  std::map<Demand, Instant> new_;  // since the last look: when jobs began to wait with it
  Instant looked_at_{};
  std::uint64_t changes_ = 0;  // of the registry, then
  std::uint64_t looks_ = 0;
};

}  // namespace loopfleet::coordinator
