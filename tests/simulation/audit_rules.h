#pragma once
// AuditRules: what becomes of results that are in doubt, and who audits whom, judged by what
// outsiders see. A part of the checker; like it, it shares no code with the core.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/wire/message.h"
#include "coordinator/event.h"
#include "storage/record.h"
#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

class AuditRules {
 public:
  using PeerId = coordinator::PeerId;
  explicit AuditRules(const FaultMix& mix) : mix_(mix) {}

  // A broken rule, if there is one.
  using Broken = std::optional<std::string>;

  void Started() { own_batches_.clear(); }  // audits of before are ordinary jobs now
  // A submission, perhaps again: nothing is looked up for it before.
  void Heard(const Uuid& client, const Uuid& request);
  // The coordinator writes it down.
  Broken WillWrite(const storage::Write& write);
  // It is durable, and its group said so.
  void Wrote(const storage::Write& write);
  void Heard(const PeerId& peer, const wire::WorkerMessage& message);
  Broken Said(const PeerId& peer, const wire::WorkerCommand& command) const;

 private:
  struct Measured {
    double fingerprint = 0;
    WallTime at{};
  };
  using Request = std::pair<Uuid, Uuid>;

  Broken Granted(const wire::Lease& lease, const wire::WorkerHello& worker) const;
  Broken WillAnswer(const storage::JobsAnswered& answered) const;
  void Suspect(double fingerprint) { suspects_.try_emplace(fingerprint, ++written_); }

  const FaultMix& mix_;
  std::uint64_t written_ = 0;                          // what was suspected, so far
  std::map<std::string, std::map<JobId, Measured>> measured_;  // durable ones, by worker
  std::map<double, std::uint64_t> suspects_;           // of which number it was
  std::map<PeerId, wire::WorkerHello> workers_;        // the last that said hello there
  std::map<Request, std::uint64_t> heard_;             // first, when so many were suspected
  std::map<JobId, std::uint64_t> looked_up_;           // not before so many were
  // In batches of nobody's, of this life.
  std::set<BatchId> own_batches_;
  // Who has measured a tree, and in which class.
  std::map<looptree::TreeKey, std::set<std::pair<std::string, std::string>>> measured_by_;
};

}  // namespace loopfleet::simulation
