#pragma once
// Checker: checks the promises from outside: by the messages to and from the coordinator, and by
// its database. It shares no code with the core and never reads the core's state.
//
// This class covers clients and the database; LeaseRules covers workers.

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/wire/message.h"
#include "coordinator/core/contract/event.h"
#include "tests/simulation/disk/disk.h"
#include "tests/simulation/fault_mix.h"
#include "tests/simulation/job_pool.h"
#include "tests/simulation/rules/cost_rules.h"
#include "tests/simulation/rules/lease_rules.h"
#include "tests/simulation/rules/queue_rules.h"
#include "tests/simulation/rules/violations.h"

namespace loopfleet::simulation {

class Checker {
 public:
  using PeerId = coordinator::PeerId;
  Checker(const FaultMix& mix, const JobPool& pool, Disk& disk)
      : mix_(mix), pool_(pool), disk_(disk), violations_(mix) {}

  // ---- the coordinator's process starts and ends
  void Started();
  void Ended();

  // ---- an event of the core, and its effects
  void WillHandle(const coordinator::Event& event) { costs_.WillHandle(event); }
  // `rows`: Core::rows_seen during the event.
  void Handled(const coordinator::Effects& effects, std::uint64_t rows) {
    violations_.Obey(costs_.Handled(effects, rows), "an event costs no more than it brings");
  }

  // ---- messages to and from the coordinator
  void Heard(Instant now, const PeerId& peer, const wire::WorkerMessage& message) {
    leases_.Heard(now, peer, message);
  }
  void Heard(const PeerId& peer, const wire::ClientRequest& request);
  void Said(Instant now, const PeerId& peer, const wire::WorkerCommand& command) {
    leases_.Said(now, peer, command);
  }
  void Said(Instant now, const PeerId& peer, const wire::CoordinatorReply& reply);
  void WillWrite(Instant now, const storage::Write& write);
  void FoundUnreachable(const PeerId& worker, const std::vector<LeaseId>& undelivered) {
    leases_.FoundUnreachable(worker, undelivered);
  }
  void FoundUnreachable(const PeerId& client);

  // ---- facts that only the parties know
  void WillReport(const wire::Report& report, Truth truth, const std::string& worker) {
    leases_.WillReport(report, truth, worker);
  }
  void WroteNonsense(const Error& error);  // a write contradicted the database
  void Surprised(std::string_view what) { violations_.Surprised(what); }

  // At the end, every accepted job has exactly one outcome.
  void CheckTheEnd();
  bool AllFinished();  // all jobs in the database

  void Violate(std::string rule, std::string text) {
    violations_.Violate(std::move(rule), std::move(text));
  }
  const std::optional<Violation>& violation() const { return violations_.first(); }
  std::size_t outcomes_seen() const { return seen_.size(); }

 private:
  struct RequestView {
    std::set<std::string> contents;  // everything ever sent under this id
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

  void Answered(const Asked& asked, const wire::Accepted& accepted);
  void Answered(const Asked& asked, const wire::JobExplanation& explanation);
  void Answered(const Asked& asked, const wire::OutcomePage& page);
  void Answered(const Asked& asked, const wire::BatchInfo& info);
  void Answered(const Asked& asked, const wire::WorkerList& list);
  void Answered(const Asked& asked, const wire::Refused& refused);

  void CheckOutcome(const Outcome& outcome);  // when first seen
  void CheckMeasured(const Outcome& outcome, const JobSpec& spec, const ResolvedTask& measure);
  void CheckFailed(const Outcome& outcome, const JobSpec& spec);
  void SeeOutcome(const Outcome& outcome);
  bool IsServed(const JobSpec& spec, Placement placement) const;
  void Obey(const std::optional<std::string>& broken, const char* rule) {
    violations_.Obey(broken, rule);
  }

  const FaultMix& mix_;
  const JobPool& pool_;
  Disk& disk_;
  Violations violations_;
  Orders orders_;
  QueueRules rules_{mix_};
  CostRules costs_{mix_};
  LeaseRules leases_{{mix_, disk_, rules_, orders_, violations_}};
  Instant said_at_{};

  std::map<PeerId, Uuid> client_at_;  // clients that said hello in this coordinator life
  std::map<std::pair<PeerId, std::uint64_t>, Asked> asked_;
  std::map<RequestKey, RequestView> requests_;
  std::map<std::string, std::pair<PeerId, std::uint64_t>> latest_drain_;  // by target
  std::set<BatchId> accepted_batches_;
  std::set<BatchId> cancel_heard_;
  std::map<JobId, Outcome> seen_;
};

}  // namespace loopfleet::simulation
