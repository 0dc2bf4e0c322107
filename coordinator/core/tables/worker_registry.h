#pragma once
// WorkerRegistry: the workers, their facts and state, and how much more each can take.
//
// Invariant: every connection maps to a worker that is not lost, and back. A worker is a candidate
// exactly if it is ready, connected, and has free credit. Candidates without a job come first, and
// among these and among the others the one that waited longest.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/hardware_facts.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/job/quarantine.h"
#include "common/wire/bounds.h"
#include "common/wire/message.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/rules/placement.h"
#include "coordinator/core/rules/worker_kind.h"
#include "coordinator/core/tables/recent_grades.h"
#include "coordinator/core/tables/run_time_estimate.h"

namespace loopfleet::coordinator {

struct MeasuredJob {
  Instant reported_at{};
  ResolvedJob job;
  std::uint64_t bytes = 0;  // of memory that the job takes
};

// What waiting jobs may expect of a worker.
enum class Availability : std::uint8_t {
  kReady,
  kQuarantined,
  kDrained,  // by an operator, who may resume it
  kGone,     // it is lost, or drains because it is about to end
};

// The shapes of the known workers. Each has a number of its own, which no other shape gets later.
struct ShapeUse {
  std::uint64_t number = 0;
  std::map<Availability, std::size_t> workers;  // how many of each; no zeros
};
using Shapes = std::map<Shape, ShapeUse>;

// Whether a worker holds jobs.
enum class Load : std::uint8_t { kIdle, kBusy };

struct Worker {
  wire::WorkerHello facts;  // without `held`
  Labels labels;            // given, and derived from its hardware
  Shapes::value_type* shape = nullptr;
  std::optional<PeerId> peer;  // none: the connection broke, or the worker is lost
  KeyText key;                 // of its hello
  wire::WorkerState state = wire::WorkerState::kReady;
  Availability availability = Availability::kReady;  // as its shape counts it
  Instant known_since{};                             // its first hello to this coordinator
  Instant heard_at{};
  std::set<LeaseId> running;         // held and not reported yet
  std::uint32_t unacknowledged = 0;  // reports that it keeps until their outcomes are on disk
  std::uint64_t finished_jobs = 0;
  // The state of its canaries, and its latest measurements since they were last known to be steady
  // (`in_doubt`), which are in doubt if the canaries drift.
  wire::CanaryState canary = wire::CanaryState::kSteady;
  std::optional<Canary> drifting;  // the drifting canary, if the worker names it
  double canary_ratio = 0;
  Instant quarantined_at{};  // when its canaries began to drift, the last time; unset: never
  LeaseId released_after{};  // granted before the end of its last quarantine; unset: none ended
  // While in quarantine: the queue's last demand and the registry's change count when no job was
  // left for it.
  std::pair<std::uint64_t, std::uint64_t> nothing_left_at;
  std::deque<MeasuredJob> in_doubt;
  std::uint64_t in_doubt_bytes = 0;  // of these jobs
  // What the worker says and what an operator ordered; they determine its state (StateOf).
  wire::DrainState said = wire::DrainState::kServing;
  std::optional<wire::Drain> drain;  // by an operator
  // Reserved for one job that runs alone: nothing else is granted until that job has run.
  struct Reservation {
    JobId job;
    bool has_begun = false;  // until then, its other jobs still have to end
  };
  std::optional<Reservation> reservation;
  RunTimeEstimate job_took;
  RecentGrades recent_grades;  // of what it measured since its hello
  Instant asked_back_at{};     // when some of its leases were asked back; unset: they were returned
  Instant looked_at{};         // when RetractFromLoaded last looked at its leases
  bool is_refilled = true;     // it is being given leases until its credit is used up
  std::uint64_t rank = 0;      // among the candidates; 0: not a candidate
  Load ranked_as = Load::kIdle;
  bool has_replaced = false;  // a lost worker: it stands for one only

  const Uuid& id() const { return facts.worker; }
  DeviceKind device() const { return facts.hardware.device; }
  Supply supply() const {
    return {.worker = id(),
            .shape = shape == nullptr ? 0 : shape->second.number,
            .device = device(),
            .max_threads = facts.max_threads,
            .protocol_minor = facts.version.minor,
            .labels = &labels};
  }
  bool Can(std::string_view capability) const {
    return std::ranges::find(facts.capabilities, capability) != facts.capabilities.end();
  }
  // Its hellos and heartbeats list all that it holds, with the reports that it keeps.
  std::uint32_t FreeCredit() const {
    const std::size_t listed = running.size() + unacknowledged;
    if (running.size() >= facts.credit || listed >= wire::kMaxLeasesPerMessage) return 0;
    return static_cast<std::uint32_t>(
        std::min(facts.credit - running.size(), wire::kMaxLeasesPerMessage - listed));
  }
};

// Quarantined, draining or ready: its state as shown to others, except for kLost.
wire::WorkerState StateOf(const Worker& worker);
// Follows from its state, and whether it drains because an operator said so.
Availability AvailabilityOf(const Worker& worker);
// Why it is quarantined; empty if not. Does not depend on draining.
Quarantine QuarantineOf(const Worker& worker);

class WorkerRegistry {
 public:
  // Adds a worker, or updates a known one that has a new connection or new facts. Ready, unless it
  // was drifting when last heard.
  Worker& Welcome(const PeerId& peer, wire::WorkerHello hello, Instant now);
  Worker* Find(const Uuid& worker);
  const Worker* Find(const Uuid& worker) const;
  Worker* FindByPeer(const PeerId& peer);
  const Worker* FindReady(const std::string& name) const;  // the first of this name
  // The workers that have this "host=..." label.
  const std::set<Uuid>& WithHostLabel(const std::string& label) const;

  // kLost disconnects it, too. To be called whenever what the worker says or an operator orders has
  // changed, even if the state has not.
  void SetState(Worker& worker, wire::WorkerState state);
  void Disconnect(Worker& worker);
  void HearAll(Instant now);  // restarts every worker's silence timer
  void AddRunning(Worker& worker, LeaseId lease);
  void RemoveRunning(Worker& worker, LeaseId lease);
  void MarkReported(Worker& worker, LeaseId lease);  // a running one
  void CountAcknowledged(const Uuid& worker);  // one more of its reports is on disk; it may be gone
  void Reserve(Worker& worker, JobId job);
  void EndReservation(Worker& worker);
  // The least free credit for which it is worth sending leases (Limits::refill_...).
  void SetRefill(const Refill& refill) { refill_ = refill; }
  void Remove(const Uuid& worker);

  // The first candidate of this device and load whose rank is above `rank`; null if there is none.
  Worker* NextCandidate(DeviceKind device, Load load, std::uint64_t rank);
  // Of the worker that became a candidate last, or was moved to the end.
  std::uint64_t last_rank() const { return last_rank_; }
  // Whether a ready worker could run it, whatever worker its affinity is bound to (IsAssignable).
  bool HasReady(const Demand& demand) const;
  const std::vector<Uuid>& InQuarantine() const;
  // Whether a ready or quarantined worker can meet it, or could if an operator resumed it: jobs
  // wait for the end of an upgrade.
  bool IsServed(const Demand& demand) const;
  bool IsServedNow(const Demand& demand) const;                  // by a ready or quarantined worker
  std::vector<WorkerKind> KindsFor(const Demand& demand) const;  // of workers not lost; distinct
  std::vector<Uuid> HeardBefore(Instant instant) const;          // last heard before then; not lost
  // Lost workers are kept for display; this forgets those last heard before then.
  void ForgetLost(Instant instant);
  // Makes room for a worker: forgets the lost one that has been silent longest, of this key if one
  // is given. Those in quarantine go last: they would come back as ready.
  void ForgetOneLost(const KeyText* key = nullptr);
  // A worker that starts on a host takes the place of one that is lost there, of its device and
  // key, and not in quarantine. Called when a worker has come, and when one was found lost: a
  // newcomer may be there before the silence of its predecessor is noticed.
  void ForgetReplaced(const Worker& changed);

  const std::map<Uuid, Worker>& all() const {
    rows_seen_ += workers_.size();  // callers go through them
    return workers_;
  }
  std::size_t size() const { return workers_.size(); }
  // Grows whenever a worker or its connection comes, goes or changes.
  std::uint64_t changes() const { return changes_; }
  std::uint64_t rows_seen() const { return rows_seen_; }  // Core::rows_seen
  void CheckInvariants() const;

 private:
  using Ranked = std::map<std::uint64_t, Worker*>;
  // Cached until the next change, so that an event does not have to check a thousand demands
  // against ten thousand workers.
  struct LastCandidates {
    std::uint64_t changes = 0;  // the registry's at the time of the check
    std::vector<Uuid> in_quarantine;
    std::map<Demand, bool> has_ready;
  };
  LastCandidates& Last() const;
  Ranked& CandidatesOf(const Worker& worker) {
    return candidates_[static_cast<std::size_t>(worker.device())]
                      [static_cast<std::size_t>(worker.ranked_as)];
  }
  bool IsCandidate(const Worker& worker) const;
  void Unrank(Worker& worker);
  void Rerank(Worker& worker);  // moves it to the end of the candidates of its load, if it is one
  void TakeShape(Worker& worker);
  void LeaveShape(Worker& worker);
  // Whether one of the workers that are available in one of these ways can meet the demand.
  // Compares it with shapes, or with the workers that it names.
  bool AnyServes(const Demand& demand, std::initializer_list<Availability> ways) const;

  std::map<Uuid, Worker> workers_;
  Shapes shapes_;
  std::map<std::string, std::set<Uuid>, std::less<>> by_host_;  // by "host=..." label
  std::map<std::string, std::set<Uuid>> by_name_;
  std::uint64_t last_shape_ = 0;
  std::unordered_map<PeerId, Uuid> peers_;
  std::array<std::array<Ranked, 2>, 2> candidates_;  // by device and load
  std::uint64_t last_rank_ = 0;
  std::uint64_t changes_ = 1;
  mutable LastCandidates last_;
  mutable std::uint64_t rows_seen_ = 0;
  Refill refill_;
};

}  // namespace loopfleet::coordinator
