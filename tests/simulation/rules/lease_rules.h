#pragma once
// LeaseRules: checks which worker holds which lease and what may be granted, by the messages to and
// from workers. A part of the checker; it shares no code with the core.
//
// The state of a lease is sometimes doubtful from outside, because one message may overtake
// another. Then neither possibility is a violation.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/wire/message.h"
#include "coordinator/core/contract/event.h"
#include "tests/simulation/disk/disk.h"
#include "tests/simulation/fault_mix.h"
#include "tests/simulation/job_pool.h"
#include "tests/simulation/rules/doubt_rules.h"
#include "tests/simulation/rules/queue_rules.h"
#include "tests/simulation/rules/violations.h"

namespace loopfleet::simulation {

// Whether a simulated worker's report is true. A lie is always detectable from its content.
enum class Truth : std::uint8_t { kHonest, kLie };

// Orders that the coordinator confirmed to clients.
struct Orders {
  std::set<std::string> drained_hosts;  // without a later request for the same host
  std::set<BatchId> cancelled;
};

class LeaseRules {
 public:
  using PeerId = coordinator::PeerId;
  struct Parts {
    const FaultMix& mix;
    Disk& disk;
    QueueRules& rules;
    const Orders& orders;
    Violations& violations;
  };
  explicit LeaseRules(const Parts& parts)
      : mix_(parts.mix),
        disk_(parts.disk),
        rules_(parts.rules),
        orders_(parts.orders),
        violations_(parts.violations),
        doubts_(parts.mix) {}

  void Started();
  void Ended();
  void Heard(Instant now, const PeerId& peer, const wire::WorkerMessage& message);
  void Said(Instant now, const PeerId& peer, const wire::WorkerCommand& command);
  void FoundUnreachable(const PeerId& worker, const std::vector<LeaseId>& undelivered);
  void WillReport(const wire::Report& report, Truth truth, const std::string& worker);

  struct ReportView {
    wire::Report report;
    Truth truth = Truth::kHonest;
    std::string worker;
    std::set<LeaseId> rightful;  // leases under which it arrived that may have been valid then
  };
  const ReportView* ReportOf(const Evaluation& evaluation) const;  // null: no worker made it
  // Leases of a job since the coordinator started.
  struct Life {
    std::size_t arrived = 0;  // held or reported by a worker, including returned leases
    std::uint32_t granted = 0;
  };
  Life LifeOf(JobId job) const;
  bool IsSilent(Instant now, const Uuid& worker);  // for long enough to be lost
  bool TakesJobs(const Uuid& worker);              // neither draining nor drifting
  DoubtRules& doubts() { return doubts_; }

 private:
  enum class Standing : std::uint8_t { kHeld, kDoubtful, kEnded };
  struct LeaseView {
    JobId job;
    Uuid worker;
    Standing standing = Standing::kHeld;
    bool is_reported = false;  // with a final verdict
    bool was_held = false;     // its worker reported holding it
  };
  struct WorkerView {
    PeerId peer;
    Instant heard{};
    bool is_draining = false;
    wire::WorkerHello facts;
    // What it reported after a silence. Counts unless the coordinator asks for a hello.
    std::vector<LeaseId> held_if_known;
    std::optional<std::pair<Instant, wire::Heartbeat>> said_if_known;
  };

  void HeardHello(Instant now, const PeerId& peer, const wire::WorkerHello& hello);
  void HeardCanaries(Instant now, const WorkerView& worker, const wire::Heartbeat& heartbeat);
  void HeardReports(const Uuid& worker, const wire::Reports& reports);
  void Granted(Instant now, const PeerId& peer, const wire::Lease& lease);
  void Doubt(LeaseId lease);
  void Deny(LeaseId lease);  // its worker was heard and does not list it
  void Unrun(LeaseId lease);
  void HeardHolding(const Uuid& worker, LeaseId lease);
  void DoubtAllOf(const Uuid& worker);
  Nanos Patience() const;
  void Stored(const wire::ReportsStored& stored);
  std::string NameOfAnotherFor(Instant now, const Uuid& worker, const JobSpec& spec,
                               Placement placement) const;
  void Violate(std::string rule, std::string text) {
    violations_.Violate(std::move(rule), std::move(text));
  }
  void Obey(const std::optional<std::string>& broken, const char* rule) {
    violations_.Obey(broken, rule);
  }
  void Surprised(std::string_view what) { violations_.Surprised(what); }

  const FaultMix& mix_;
  Disk& disk_;
  QueueRules& rules_;
  const Orders& orders_;
  Violations& violations_;
  DoubtRules doubts_;

  std::map<LeaseId, LeaseView> leases_;
  std::map<JobId, std::set<LeaseId>> leases_of_;
  // Leases of each job since the coordinator started that a worker reported holding and did not
  // return unrun: at most three (promise I7).
  std::map<JobId, std::set<LeaseId>> had_in_life_;
  // Those that their worker, once heard, did not list.
  std::map<JobId, std::set<LeaseId>> denied_in_life_;
  // Those that a worker held or reported, including returned ones.
  std::map<JobId, std::set<LeaseId>> arrived_in_life_;
  std::map<JobId, std::uint32_t> granted_in_life_;
  std::map<Uuid, WorkerView> workers_;
  std::map<PeerId, Uuid> worker_at_;
  std::map<double, ReportView> reports_;  // by fingerprint
};

}  // namespace loopfleet::simulation
