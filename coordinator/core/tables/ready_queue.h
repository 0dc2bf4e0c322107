#pragma once
// ReadyQueue: the jobs that a worker could start now, in the order in which they are served.
//
// Among one client's jobs: higher priority first, then earlier acceptance; a job that was granted
// before precedes its equals.
//
// Among clients: round robin. After a client was served, it comes behind all clients that were
// already waiting; if its jobs take k times as long as the average job, it comes k turns later (at
// most kMostWeight). A new client is served next, after those that came before it. So every client
// with work for a worker gets a share of it, whatever others have queued and at whatever priority;
// and clients save no credit and run up no debt: only who was served last matters, by the workers
// that both wait for. Being served by a worker counts as a turn for all the client's jobs that this
// worker could run, and for no others.
//
// Every operation is logarithmic in the number of queued jobs; PopFor also takes one step for each
// distinct demand that the worker serves. Which ones those are is remembered for each shape of
// worker, so each demand is compared with each shape once.
//
// Invariant: a job is in the queue, exactly once, if and only if its state in the JobTable is
// Queued; the state's Place is its position. No class and no shelf is empty. Every shelf is in its
// class's order.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "coordinator/core/rules/placement.h"
#include "coordinator/core/tables/run_time_estimate.h"

namespace loopfleet::coordinator {

class ReadyQueue {
  struct Lane;
  struct Shelf;
  // Order of a job among its client's jobs; the least is next.
  struct Precedence {
    std::int32_t below_most = 0;  // kMostPriority - priority
    std::int64_t order = 0;
    friend auto operator<=>(const Precedence&, const Precedence&) = default;
  };
  using Jobs = std::map<Precedence, JobId>;

 public:
  static constexpr std::uint64_t kMostWeight = 64;

  // A job's position; valid until it is popped or removed.
  class Place {
   public:
    JobId job() const { return entry_->second; }

   private:
    friend class ReadyQueue;
    Place(Shelf* shelf, Jobs::iterator entry) : shelf_(shelf), entry_(entry) {}
    Shelf* shelf_;
    Jobs::iterator entry_;
  };
  struct Entering {
    JobId job;
    Uuid client;
    std::int32_t priority = 0;
  };

  ReadyQueue() = default;
  ReadyQueue(const ReadyQueue&) = delete;  // places point into it
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  Place PushBack(const Entering& entering, const Demand& demand);
  // Before its equals: for a job that was granted before.
  Place PushFront(const Entering& entering, const Demand& demand);
  // Changes the job's demand; its place in the order stays the same.
  Place Move(const Place& place, const Demand& demand);
  void Remove(const Place& place);

  // The next job that this worker may run; nullopt if there is none.
  std::optional<JobId> PopFor(const Supply& supply);
  // Considers only the wanted demands.
  using HasWaiters = std::function<bool(const Demand&)>;
  std::optional<JobId> PopFor(const Supply& supply, const HasWaiters& is_wanted);
  // A job of this client took this long; its next jobs are expected to take as long.
  void Took(const Uuid& client, Nanos duration);

  std::size_t Size(Placement placement) const;
  std::size_t Size(const Demand& demand) const {
    const auto entry = classes_.find(demand);
    return entry == classes_.end() ? 0 : entry->second.size;
  }
  std::size_t size() const { return size_; }
  // Distinct demands that any fitting worker may meet, and those bound to one worker.
  struct DemandCounts {
    std::size_t open = 0;
    std::size_t bound = 0;
    friend bool operator==(const DemandCounts&, const DemandCounts&) = default;
  };
  DemandCounts demands() const {
    return {.open = open_demands_, .bound = classes_.size() - open_demands_};
  }
  DemandCounts DemandsOf(const Uuid& client) const;                        // of its queued jobs
  std::size_t clients() const { return lanes_.size() - resting_.size(); }  // with queued jobs
  bool Has(const Demand& demand) const { return classes_.contains(demand); }
  // The latest demand's number: grows when jobs begin to wait with a demand that no other job waits
  // with. A worker that found no job need not search again until a newer demand is there.
  std::uint64_t last_demand() const { return last_demand_; }
  bool HasDemandAfter(std::uint64_t number) const {
    return !by_number_.empty() && by_number_.rbegin()->first > number;
  }
  // For tests: how often a demand was compared with what a worker offers.
  std::uint64_t matches() const { return matches_; }
  std::uint64_t rows_seen() const { return rows_seen_ + matches_; }  // Core::rows_seen

  // ---- for inspection
  std::vector<Demand> Demands(std::size_t most = SIZE_MAX) const;
  // A client's jobs of one priority under a demand. FrontOf gives the first job of a group.
  struct Group {
    Uuid client;
    std::int32_t priority = 0;
  };
  std::vector<Group> Groups(const Demand& demand) const;
  std::optional<JobId> FrontOf(const Demand& demand, const Group& group) const;

  // The jobs of the same demand that precede a job.
  struct Position {
    std::size_t own = 0;  // of its own client; a lower bound if they are not all counted
    bool own_is_exact = true;
    std::size_t others = 0;  // of other clients, if all jobs take equally long
    std::size_t other_clients = 0;
  };
  Position PositionOf(const Place& place) const;
  const Demand& DemandAt(const Place& place) const;

  void CheckInvariants() const;

 private:
  // When a client is served; the least is next. Stamps are unique, except that the shelves of one
  // client may share one.
  struct Turn {
    std::uint64_t turn = 0;
    std::uint64_t stamp = 0;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  // All jobs with one demand.
  struct Class {
    std::uint64_t number = 0;  // of the demand; a demand that comes back gets a new one
    bool names_host = false;
    std::map<Uuid, Shelf> shelves;
    std::map<Turn, Shelf*> order;
    std::size_t size = 0;
  };
  using Classes = std::map<Demand, Class>;
  // The classes that a shape serves (ShapeServes), of those that were compared with it.
  struct Matched {
    std::vector<std::pair<std::uint64_t, Classes::value_type*>> classes;  // ascending by number
    std::uint64_t last = 0;     // those up to this number were compared
    std::uint64_t removed = 0;  // value of removed_ at the last purge of removed classes
  };
  // One client's jobs with one demand.
  struct Shelf {
    Classes::iterator of;
    Lane* lane = nullptr;
    Turn turn;
    Jobs jobs;
  };
  // All queued jobs of one client.
  struct Lane {
    Uuid client;
    std::uint64_t next_turn = 0;  // at the earliest
    RunTimeEstimate run_time;     // of its jobs
    std::size_t queued = 0;
    std::vector<Shelf*> shelves;
    DemandCounts demands;  // of these shelves
  };

  Place Insert(const Demand& demand, const Uuid& client, Precedence precedence, JobId job);
  Shelf& ShelfFor(const Demand& demand, const Uuid& client);
  Lane& LaneOf(const Uuid& client);
  void Take(Shelf& shelf, Jobs::iterator entry);
  std::uint64_t WeightOf(const Lane& lane) const;
  template <class Wants>
  const Shelf* NextFor(const Supply& supply, const Wants& is_wanted);  // null: none fits
  // The client was served by a worker that serves these of its shelves.
  void GiveNextTurn(Lane& lane, const std::vector<Shelf*>& served);
  void Rest(Lane& lane);  // it has nothing queued
  template <class Wants>
  std::optional<JobId> Pop(const Supply& supply, const Wants& is_wanted);
  const Matched& Match(const Supply& supply);
  bool Serves(const Supply& supply, const Demand& demand);
  // Whether it serves this class, one of the matched ones.
  bool ServesMatched(const Supply& supply, const Classes::value_type& of);
  bool IsServed(const Supply& supply, const Matched& matched, const Classes::value_type& of);
  template <class Visit>
  void ForEachServed(const Supply& supply, const Visit& visit);

  Classes classes_;
  std::map<std::uint64_t, Classes::value_type*> by_number_;
  std::unordered_map<std::uint64_t, Matched> matched_;  // by shape; looked up, never iterated
  std::map<Uuid, Lane> lanes_;
  // Lanes with nothing queued whose next turn has not come yet: at most as many as turns may pass.
  std::set<std::pair<std::uint64_t, Uuid>> resting_;
  RunTimeEstimate run_time_;  // of all jobs
  std::uint64_t turn_ = 0;
  std::uint64_t last_stamp_ = 0;
  std::int64_t next_back_ = 0;
  std::int64_t next_front_ = -1;
  std::size_t open_demands_ = 0;
  std::size_t size_ = 0;
  std::uint64_t last_demand_ = 0;
  std::uint64_t removed_ = 0;   // classes removed so far
  std::vector<Shelf*> served_;  // used by Pop() only: kept for its memory
  std::uint64_t matches_ = 0;
  mutable std::uint64_t rows_seen_ = 0;
};

}  // namespace loopfleet::coordinator
