#pragma once
// Harness: a core with a virtual clock, recorded effects and a disk that writes on demand, so that
// a scenario takes a few lines. Checks the core's invariants after every event. The disk checks
// what storage would refuse: gaps in indices and sequences, a second outcome of a job. A restart
// loses everything but the disk.

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/core.h"

namespace loopfleet::coordinator {

using std::chrono::milliseconds;
using std::chrono::seconds;

Uuid Named(std::uint8_t name);  // deterministic

// The contents of a coordinator's database.
class FakeDisk {
 public:
  void Apply(const storage::Write& write);
  Recovered Recover() const;
  std::optional<storage::StoredRequest> FindRequest(const Uuid& client, const Uuid& request) const;

  std::map<JobId, JobSpec> jobs;
  std::map<JobId, Resolution> admissions;  // as the harness admitted them
  std::map<JobId, WallTime> accepted_at;
  std::map<JobId, Outcome> outcomes;
  std::map<BatchId, storage::StoredBatch> batches;
  std::vector<storage::ResultsSuspected> suspected;
  std::vector<storage::ResultDoubted> doubted;
  std::set<JobId> in_doubt;  // flagged when first stored
  std::map<JobId, std::vector<storage::Witness>> agreeing;
  std::map<std::string, storage::WorkersDrained> drains;
  std::uint64_t starts = 0;

 private:
  std::map<RequestKey, storage::StoredRequest> requests_;
};

inline constexpr std::uint64_t kFlopCount = 100;  // the same for every program

struct JobSetup {
  std::uint8_t tree = 0;
  Placement placement = Placement::kCpu;
  Freshness freshness = Freshness::kAllowStored;
  std::optional<Failure> invalid;  // the failure that admission finds
  bool stored = false;             // the store has the result
  std::uint32_t threads = 1;
  double precision = 0;
  std::int32_t priority = 0;
  std::vector<std::string> labels = {};
  std::string affinity = {};
  double deadline_s = 0;
  Grade min_grade = Grade::kD;
  std::string benchmark = {};  // "": of a loop schedule
};

class Harness {
 public:
  explicit Harness(Limits limits = {});

  // ---- what clients and workers do
  void ClientHello(const PeerId& peer, std::uint8_t client);
  struct Sent {
    std::uint8_t request = 0;
    std::optional<BatchId> append_to;
    wire::BatchEnd end = wire::BatchEnd::kComplete;
    std::string content;  // what the digest covers
  };
  std::uint64_t Submit(const PeerId& peer, std::vector<JobSetup> jobs, Sent sent);
  std::uint64_t Submit(const PeerId& peer, std::vector<JobSetup> jobs);  // a fresh request id
  std::uint64_t Ask(const PeerId& peer, ClientQuestion question);
  struct Hello {
    std::uint32_t credit = 1;
    DeviceKind device = DeviceKind::kCpu;
    std::vector<wire::HeldLease> held;
    wire::ProtocolVersion version = wire::kProtocolVersion;
    std::uint32_t max_threads = 1;
    double clock_mhz = 0;
    std::vector<std::string> labels = {};
    std::string isa = {};
    std::string host = {};
    std::vector<std::string> capabilities = {};
    double flop_per_second = 0;  // measured peak; 0: unknown
    std::string isolation = {};
  };
  void WorkerHello(const PeerId& peer, std::uint8_t worker, Hello hello);
  void WorkerHello(const PeerId& peer, std::uint8_t worker) { WorkerHello(peer, worker, Hello{}); }
  void Heartbeat(const PeerId& peer, std::vector<LeaseId> held = {},
                 wire::DrainState drain = wire::DrainState::kServing);
  void Report(const PeerId& peer, const wire::Lease& lease);  // a good measurement
  void ReportFailure(const PeerId& peer, const wire::Lease& lease, FailureCode code);
  void ReportEvaluation(const PeerId& peer, const wire::Lease& lease, Evaluation evaluation);
  void Say(const PeerId& peer, wire::WorkerMessage message);

  // ---- what the environment does
  void Write();                         // writes all pending groups and reports them
  void WriteOne();                      // writes only the first
  void RefuseWrites(FailureCode code);  // disk full: refuses what may be refused, the rest waits
  void Pass(Nanos time);                // in steps of 100 ms, each with a tick
  void Restart();                       // kill -9: only the disk is left
  void Give(Event event);               // any other event

  // ---- what the core did since the last call
  std::vector<wire::Lease> TakeLeases(const PeerId& worker);
  template <class T>
  std::optional<T> TakeReply(const PeerId& peer, std::uint64_t number);
  template <class T>
  std::optional<T> TakeCommand(const PeerId& worker);
  bool TakePage(const PeerId& peer, std::uint64_t number);  // whether a fetch was answered
  std::size_t Workers(wire::WorkerState state) const;       // how many are in this state
  bool SaidNothing() const { return replies.empty() && pages.empty() && from_storage.empty(); }
  wire::Accepted MustAccept(const PeerId& peer, std::uint64_t number);

  Evaluation GoodEvaluation(const wire::Lease& lease) const;
  const Outcome& OutcomeOf(JobId job) const;

  Moment now{.instant = Instant(seconds(1000)), .wall = WallTime(seconds(1'700'000'000))};
  Limits limits;
  FakeDisk disk;
  std::map<PeerId, KeyText> keys;  // of connections
  std::unique_ptr<Core> core;
  std::vector<ReplyToClient> replies;
  std::vector<SendOutcomes> pages;
  std::vector<AnswerFromStorage> from_storage;
  std::vector<SendJob> shown_jobs;
  std::vector<SendFleet> shown_fleets;
  std::vector<Observation> observations;
  std::vector<SendToWorker> commands;
  std::vector<AnswerCodeLookup> code_lookups;
  std::vector<KeepBlob> kept_blobs;
  std::vector<SendBlob> sent_blobs;
  std::deque<Persist> unwritten;

 private:
  void Start();
  void Note(Effect effect);

  std::uint64_t last_number_ = 0;
  std::uint8_t last_request_ = 100;
  std::map<PeerId, std::string> hosts_;                      // of the hellos
  std::map<std::string, std::vector<Resolution>> admitted_;  // by digest
};

template <class T>
std::optional<T> Harness::TakeReply(const PeerId& peer, std::uint64_t number) {
  for (auto reply = replies.begin(); reply != replies.end(); ++reply) {
    if (reply->peer != peer || reply->number != number) continue;
    if (!std::holds_alternative<T>(reply->message)) continue;
    T message = std::get<T>(std::move(reply->message));
    replies.erase(reply);
    return message;
  }
  return std::nullopt;
}

template <class T>
std::optional<T> Harness::TakeCommand(const PeerId& worker) {
  for (auto command = commands.begin(); command != commands.end(); ++command) {
    if (command->peer != worker || !std::holds_alternative<T>(command->command)) continue;
    T message = std::get<T>(std::move(command->command));
    commands.erase(command);
    return message;
  }
  return std::nullopt;
}

inline JobId MakeJobId(std::uint64_t batch, std::uint32_t index) {
  return {.batch = BatchId{batch}, .index = index};
}

inline FailureCode CodeOf(const Outcome& outcome) { return outcome.evaluation.failure().code; }

// The start of most scenarios: client "c", and a batch of one job that worker "w" (credit 1) runs.
struct OneLease : Harness {
  OneLease() {
    ClientHello("c", 1);
    number = Submit("c", {{.tree = 7}});
    Write();
    MustAccept("c", number);
    WorkerHello("w", 50);
    lease = TakeLeases("w").at(0);
  }
  std::uint64_t number = 0;
  wire::Lease lease;
};

}  // namespace loopfleet::coordinator
