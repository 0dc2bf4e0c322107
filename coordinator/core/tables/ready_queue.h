#pragma once
// ReadyQueue: the jobs that a worker could start now, and whose turn it is.
//
// Within one client's jobs: the higher priority first, then what was accepted first; a job that had
// its turn before comes before its equals.
//
// Between clients: turn about. A client that was given a job comes after those that wait since; if
// its jobs take k times as long as jobs do here, k turns later (at most kMostWeight). A client that
// comes has its turn next, after those that came before it. So whoever has work for a worker gets a
// share of it, whatever others have queued, and whatever priorities they use; and nobody saves up
// or owes anything: what counts is who was served last, by the workers that they both wait for. A
// turn at a worker counts for all that the client waits with for such a worker, and for nothing
// else.
//
// Every operation takes the logarithm of what is queued; PopFor besides takes one step for each
// demand that jobs wait with.
//
// Invariant: a job is in it exactly once if its state in the JobTable is Queued, and not otherwise;
// the state's Place is where. No demand and no shelf is empty. Every shelf is in its demand's
// order.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "coordinator/core/rules/placement.h"

namespace loopfleet::coordinator {

class ReadyQueue {
  struct Lane;
  struct Shelf;
  // Of a job among its client's: the least is next.
  struct Precedence {
    std::int32_t below_most = 0;  // kMostPriority - priority
    std::int64_t order = 0;
    friend auto operator<=>(const Precedence&, const Precedence&) = default;
  };
  using Jobs = std::map<Precedence, JobId>;

 public:
  static constexpr std::uint64_t kMostWeight = 64;

  // Where a job stands; valid until it is popped or removed.
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
  // Before its equals: for a job that had its turn before.
  Place PushFront(const Entering& entering, const Demand& demand);
  // The job demands something else from now on; its turn stays the same.
  Place Move(const Place& place, const Demand& demand);
  void Remove(const Place& place);

  // The job whose turn it is, of those that such a worker may run.
  std::optional<JobId> PopFor(const Supply& supply);
  // ... of those with wanted demands.
  using IsWanted = std::function<bool(const Demand&)>;
  std::optional<JobId> PopFor(const Supply& supply, const IsWanted& is_wanted);
  // A job of this client took so long: its next ones are expected to.
  void Took(const Uuid& client, Nanos duration);

  std::size_t Size(Placement placement) const;
  std::size_t size() const { return size_; }
  // That any worker which has what is needed may serve.
  std::size_t open_demands() const { return open_demands_; }
  // That are bound to one worker.
  std::size_t bound_demands() const { return classes_.size() - open_demands_; }
  bool Has(const Demand& demand) const { return classes_.contains(demand); }
  // Grows with each job that enters or moves: a worker for which there was nothing need not look
  // again before.
  std::uint64_t changes() const { return changes_; }

  // ---- for looking at
  std::vector<Demand> Demands() const;
  // Of one client's jobs of one priority under a demand, the first; of each such group.
  struct Group {
    Uuid client;
    std::int32_t priority = 0;
  };
  std::vector<Group> Groups(const Demand& demand) const;
  std::optional<JobId> FrontOf(const Demand& demand, const Group& group) const;

  // What is before a job, among those with its demand.
  struct Position {
    std::size_t own = 0;  // of its client; at least so many, if they are not all counted
    bool own_is_exact = true;
    std::size_t others = 0;  // of other clients, if jobs take alike
    std::size_t other_clients = 0;
  };
  Position PositionOf(const Place& place) const;
  const Demand& DemandAt(const Place& place) const;

  void CheckInvariants() const;

 private:
  // When a client's turn is: the least is next. Stamps are given once, but for the shelves of one
  // client, which may share one.
  struct Turn {
    std::uint64_t turn = 0;
    std::uint64_t stamp = 0;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  // The jobs with one demand.
  struct Class {
    std::map<Uuid, Shelf> shelves;
    std::map<Turn, Shelf*> order;
    std::size_t size = 0;
  };
  using Classes = std::map<Demand, Class>;
  // One client's jobs with one demand.
  struct Shelf {
    Classes::iterator of;
    Lane* lane = nullptr;
    Turn turn;
    Jobs jobs;
  };
  // One client.
  struct Lane {
    Uuid client;
    std::uint64_t next_turn = 0;  // at the earliest
    Nanos expected{0};            // that one of its jobs takes; 0: not known
    std::size_t queued = 0;
    std::vector<Shelf*> shelves;
  };

  Place Insert(const Demand& demand, const Uuid& client, Precedence precedence, JobId job);
  Shelf& ShelfFor(const Demand& demand, const Uuid& client);
  Lane& LaneOf(const Uuid& client);
  void Take(Shelf& shelf, Jobs::iterator entry);
  std::uint64_t WeightOf(const Lane& lane) const;
  template <class Wants>
  const Shelf* NextFor(const Supply& supply, const Wants& is_wanted);  // null: it is nobody's turn
  // The client was served by such a worker.
  void GiveNextTurn(Lane& lane, const Supply& supply);
  void Rest(Lane& lane);  // it has nothing queued
  template <class Wants>
  std::optional<JobId> Pop(const Supply& supply, const Wants& is_wanted);
  template <class Visit>
  void ForEachServed(const Supply& supply, const Visit& visit);

  Classes classes_;
  std::map<Uuid, Lane> lanes_;
  // Those that have nothing queued, and whose next turn is still to come: as many as turns may
  // pass.
  std::set<std::pair<std::uint64_t, Uuid>> resting_;
  Nanos typical_{0};  // that a job takes, of whatever client; 0: not known
  std::uint64_t turn_ = 0;
  std::uint64_t last_stamp_ = 0;
  std::int64_t next_back_ = 0;
  std::int64_t next_front_ = -1;
  std::size_t open_demands_ = 0;
  std::size_t size_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace loopfleet::coordinator
