#pragma once
// WorkerRegistry: who is there, what it is, and how much more it would take.
//
// Invariant: every connection leads to a worker that is not lost, and back. A worker stands among
// the candidates exactly if it is ready, connected, and has free credit; there, the one that waited
// longest comes first.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
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
#include "common/wire/message.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/rules/placement.h"

namespace loopfleet::coordinator {

struct MeasuredJob {
  Instant reported_at{};
  AdmittedJob job;
};

struct Worker {
  wire::WorkerHello facts;     // without `held`
  Labels labels;               // given, and by its hardware
  std::optional<PeerId> peer;  // none: the connection broke, or it is lost
  KeyText key;                 // that it said hello with
  wire::WorkerState state = wire::WorkerState::kReady;
  Instant heard_at{};
  std::set<LeaseId> running;  // leases that it has and has not reported
  std::uint64_t finished_jobs = 0;
  // What its canaries say, and what it measured since they were last known to be steady (the latest
  // of it): in doubt if they drift.
  wire::CanaryState canary = wire::CanaryState::kSteady;
  std::optional<Canary> drifting;  // which of them, if it says so
  double canary_ratio = 0;
  Instant quarantined_at{};  // its canaries drift since; meaningful while it is in quarantine
  Instant released_at{};     // from its last quarantine; unset: it was in none
  // While it is in quarantine: changes of the queue and of the registry when nothing was left to
  // it.
  std::pair<std::uint64_t, std::uint64_t> nothing_left_at;
  std::deque<MeasuredJob> in_doubt;
  // What it says of itself, and what is said of it: they make its state (StateOf).
  wire::DrainState said = wire::DrainState::kServing;
  std::optional<wire::Drain> drain;  // by an operator
  // For one job alone: nothing else is granted to it until that job has had its turn.
  struct Reservation {
    JobId job;
    bool has_begun = false;  // until then, what it runs is still to end
  };
  std::optional<Reservation> reservation;
  Nanos job_took{0};        // a job of late, on average; 0: not known
  Instant asked_back_at{};  // when some of its leases were asked back; unset: they came
  bool is_refilled = true;  // it is being given leases until its credit is used up
  std::uint64_t rank = 0;   // among the candidates; 0: not one of them

  const Uuid& id() const { return facts.worker; }
  DeviceKind device() const { return facts.hardware.device; }
  Supply supply() const {
    return {
        .worker = id(), .device = device(), .max_threads = facts.max_threads, .labels = &labels};
  }
  bool Can(std::string_view capability) const {
    return std::ranges::find(facts.capabilities, capability) != facts.capabilities.end();
  }
  std::uint32_t FreeCredit() const {
    return running.size() >= facts.credit
               ? 0
               : facts.credit - static_cast<std::uint32_t>(running.size());
  }
};

// What decides whether a stored result could have come from a worker of now.
struct WorkerKind {
  std::string hardware_class;
  CompilerFacts compiler;
  std::string policy;
  friend bool operator==(const WorkerKind&, const WorkerKind&) = default;
};
WorkerKind KindOf(const wire::WorkerHello& facts);

// Between quarantine, draining and ready: what it is for everybody to see, but for kLost.
wire::WorkerState StateOf(const Worker& worker);
// Why it is not trusted, whether or not it drains besides.
Quarantine QuarantineOf(const Worker& worker);

class WorkerRegistry {
 public:
  // A new worker, or a known one over a new connection or with new facts; ready, but for one that
  // drifted when it was last heard.
  Worker& Welcome(const PeerId& peer, wire::WorkerHello hello, Instant now);
  Worker* Find(const Uuid& worker);
  const Worker* Find(const Uuid& worker) const;
  Worker* FindByPeer(const PeerId& peer);
  const Worker* FindReady(const std::string& name) const;  // the first so called

  void SetState(Worker& worker, wire::WorkerState state);  // kLost disconnects, too
  void Disconnect(Worker& worker);
  void HearAll(Instant now);  // nobody's silence counts so far
  void AddRunning(Worker& worker, LeaseId lease);
  void RemoveRunning(Worker& worker, LeaseId lease);
  void Reserve(Worker& worker, JobId job);
  void EndReservation(Worker& worker);
  void JobTook(Worker& worker, Nanos time);
  // At least as much room as it is worth sending leases for (Limits::refill_...).
  void SetRefill(const Refill& refill) { refill_ = refill; }
  void Remove(const Uuid& worker);

  // The first of this device's candidates whose rank is beyond `rank`; null if there is none.
  Worker* NextCandidate(DeviceKind device, std::uint64_t rank);
  // Whether a ready worker could run it, whatever its affinity is bound to (IsAssignable).
  bool HasReady(const Demand& demand) const;
  const std::vector<Uuid>& InQuarantine() const;
  // By one that is ready or in quarantine.
  bool IsServed(const Demand& demand) const;
  std::vector<WorkerKind> KindsFor(const Demand& demand) const;  // distinct ones of those not lost
  std::vector<Uuid> HeardBefore(Instant instant) const;          // not lost, and silent since
  // Lost workers are kept for people to see; forgets the older ones.
  void ForgetLost(Instant lost_before, std::size_t max_lost);

  const std::map<Uuid, Worker>& all() const { return workers_; }
  std::size_t size() const { return workers_.size(); }
  std::size_t CountIn(wire::WorkerState state) const;
  // Grows whenever a worker comes, goes, or becomes something else, or its connection does.
  std::uint64_t changes() const { return changes_; }
  void CheckInvariants() const;

 private:
  using Ranked = std::map<std::uint64_t, Worker*>;
  // Remembered until the next change: a thousand demands times ten thousand workers are not looked
  // at again for each event.
  struct LastCandidates {
    std::uint64_t changes = 0;  // when the following was looked at
    std::vector<Uuid> in_quarantine;
    std::map<Demand, bool> has_ready;
  };
  LastCandidates& Last() const;
  Ranked& CandidatesOf(const Worker& worker) {
    return candidates_[static_cast<std::size_t>(worker.device())];
  }
  bool IsCandidate(const Worker& worker) const;
  void Unrank(Worker& worker);
  void Rerank(Worker& worker);  // to the end of the candidates, if it is one

  std::map<Uuid, Worker> workers_;
  std::unordered_map<PeerId, Uuid> peers_;
  std::array<Ranked, 2> candidates_;  // by device
  std::uint64_t last_rank_ = 0;
  std::uint64_t changes_ = 1;
  mutable LastCandidates last_;
  Refill refill_;
};

}  // namespace loopfleet::coordinator
