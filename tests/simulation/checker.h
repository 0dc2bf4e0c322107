#pragma once
// Checker: the promises, judged by what outsiders see: what the coordinator was told and what it
// said, and what is in its database. It shares no code with the core and never looks into it.
//
// What can be told from outside about a lease is sometimes doubtful (a message may have overtaken
// another one). Where it is, neither possibility is held against the coordinator.

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/wire/message.h"
#include "coordinator/event.h"
#include "tests/simulation/audit_rules.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/fault_mix.h"
#include "tests/simulation/job_pool.h"
#include "tests/simulation/queue_rules.h"

namespace loopfleet::simulation {

// What a simulated worker knows of a report, and its reader cannot.
enum class Truth : std::uint8_t { kHonest, kLie };

struct Violation {
  std::string rule;  // "I1 durable before accepted"
  std::string text;
};

class Checker {
 public:
  using PeerId = coordinator::PeerId;
  Checker(const FaultMix& mix, const JobPool& pool, Disk& disk)
      : mix_(mix), pool_(pool), disk_(disk), rules_(mix), audit_rules_(mix) {}

  // ---- the coordinator's process starts and ends
  void Started();
  void Ended();

  // ---- what reaches it, and what it says
  void Heard(Instant now, const PeerId& peer, const wire::WorkerMessage& message);
  void Heard(const PeerId& peer, const wire::ClientRequest& request);
  void Said(Instant now, const PeerId& peer, const wire::WorkerCommand& command);
  void Said(Instant now, const PeerId& peer, const wire::CoordinatorReply& reply);
  void WillWrite(Instant now, const storage::Write& write);
  void Wrote(const storage::Write& write) { audit_rules_.Wrote(write); }  // it is durable
  void FoundUnreachable(const PeerId& worker, const std::vector<LeaseId>& undelivered);
  void FoundUnreachable(const PeerId& client);

  // ---- what parties know of themselves
  void WillReport(const wire::Report& report, Truth truth, const std::string& worker);
  void WroteNonsense(const Error& error);  // the disk was told something that contradicts it
  void Surprised(std::string_view what);   // must not happen where nothing goes wrong

  // Everything is over: every accepted job has exactly one outcome.
  void CheckTheEnd();
  bool AllFinished();  // of what is in the database

  void Violate(std::string rule, std::string text);
  const std::optional<Violation>& violation() const { return violation_; }
  std::size_t outcomes_seen() const { return seen_.size(); }

 private:
  enum class Standing : std::uint8_t { kHeld, kDoubtful, kEnded };
  struct LeaseView {
    JobId job;
    Uuid worker;
    Standing standing = Standing::kHeld;
    bool is_reported = false;  // with a verdict that is final
    bool was_held = false;     // its worker was heard to have it
  };
  struct WorkerView {
    PeerId peer;
    Instant heard{};
    bool is_draining = false;
    wire::WorkerHello facts;
  };
  struct ReportView {
    wire::Report report;
    Truth truth = Truth::kHonest;
    std::string worker;
    std::set<LeaseId> rightful;  // leases under which it arrived while they may have stood
  };
  struct RequestView {
    std::set<std::string> contents;  // that were ever sent under this id
    std::optional<wire::Accepted> accepted;
    std::string accepted_content;
  };
  struct Asked {
    std::pair<PeerId, std::uint64_t> key;
    wire::ClientMessage message;
    std::string content;
    Uuid client;
    bool was_greeted = false;
  };
  using RequestKey = std::pair<Uuid, Uuid>;

  void HeardHello(Instant now, const PeerId& peer, const wire::WorkerHello& hello);
  void HeardReports(const Uuid& worker, const wire::Reports& reports);
  void Granted(Instant now, const PeerId& peer, const wire::Lease& lease);
  void Doubt(LeaseId lease);
  void Deny(LeaseId lease);  // its worker, which was heard, does not list it
  void Unrun(LeaseId lease);
  void HeardHolding(const Uuid& worker, LeaseId lease);
  void DoubtAllOf(const Uuid& worker);
  Nanos Patience() const;
  void Stored(const wire::ReportsStored& stored);

  void Answered(const Asked& asked, const wire::Accepted& accepted);
  void Answered(const Asked& asked, const wire::JobExplanation& explanation);
  void Answered(const Asked& asked, const wire::OutcomePage& page);
  void Answered(const Asked& asked, const wire::BatchInfo& info);
  void Answered(const Asked& asked, const wire::WorkerList& list);
  void Answered(const Asked& asked, const wire::Refused& refused);

  void CheckOutcome(const Outcome& outcome);  // on its first sight
  void CheckMeasured(const Outcome& outcome, const JobSpec& spec,
                     const coordinator::ToMeasure& measure);
  void CheckFailed(const Outcome& outcome, const JobSpec& spec);
  void SeeOutcome(const Outcome& outcome);
  bool IsServed(const JobSpec& spec, Placement placement) const;
  void Obey(const QueueRules::Broken& broken, const char* rule);

  const FaultMix& mix_;
  const JobPool& pool_;
  Disk& disk_;
  QueueRules rules_;
  AuditRules audit_rules_;
  Instant said_at_{};

  std::map<LeaseId, LeaseView> leases_;
  std::map<JobId, std::set<LeaseId>> leases_of_;
  // Leases of each job, since the coordinator started, that its worker was heard to have and that
  // did not come back unrun: at most three (promise I7).
  std::map<JobId, std::set<LeaseId>> had_in_life_;
  // Those that a worker, heard by then, did not list.
  std::map<JobId, std::set<LeaseId>> denied_in_life_;
  // Those that a worker had or reported, with those that came back.
  std::map<JobId, std::set<LeaseId>> arrived_in_life_;
  std::map<JobId, std::uint32_t> granted_in_life_;
  std::map<Uuid, WorkerView> workers_;
  std::map<PeerId, Uuid> worker_at_;
  std::map<double, ReportView> reports_;  // by the time that it reports: no two are the same
  std::map<PeerId, Uuid> client_at_;      // greeted in this life
  std::map<std::pair<PeerId, std::uint64_t>, Asked> asked_;
  std::map<RequestKey, RequestView> requests_;
  std::map<std::string, std::pair<PeerId, std::uint64_t>> latest_drain_;  // said, by target
  // Hosts that are drained, and said so, and of which nobody spoke since.
  std::set<std::string> drained_hosts_;
  std::set<BatchId> accepted_batches_;
  std::set<BatchId> cancel_heard_;
  std::set<BatchId> cancelled_;  // and said so
  std::map<JobId, Outcome> seen_;
  std::optional<Violation> violation_;
};

}  // namespace loopfleet::simulation
