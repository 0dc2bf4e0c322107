#pragma once
// SimulatedClient: an application that behaves like the client library (client/client.cc): one
// request at a time, resent after a silence behind a new hello; batches in several messages;
// outcomes fetched page by page. It keeps its request ids, so that it resumes after a crash.

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "tests/simulation/agenda.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/fault_mix.h"
#include "tests/simulation/job_pool.h"
#include "tests/simulation/network.h"
#include "tests/simulation/rules/checker.h"
#include "tests/simulation/trace.h"

namespace loopfleet::simulation {

class SimulatedClient {
 public:
  struct Parts {
    Agenda& agenda;
    Trace& trace;
    const FaultMix& mix;
    JobPool& pool;
    ClientPort& port;
    Checker& checker;
    std::vector<BatchId>& known_batches;  // of all clients, which read each other's
  };
  SimulatedClient(const Parts& parts, std::size_t index, std::uint64_t seed);

  void Start();
  void Heal();
  bool is_done() const { return is_gone_for_good_ || stage_ == Stage::kDone; }
  std::string Describe() const;

 private:
  enum class Stage : std::uint8_t { kSubmit, kRepeat, kCancel, kFollow, kRead, kDone };
  struct Batch {
    std::vector<wire::SubmitJobs> messages;
    BatchId id;
    bool is_cancelled = false;
  };
  struct Outstanding {
    std::uint64_t number = 0;
    wire::ClientMessage message;
    Nanos expected{};
    Instant sent_at{};
  };

  void Plan();
  void GoOn();
  void Ask(wire::ClientMessage message, Nanos expected);
  void SayHello();
  void Transmit();
  void ResendAfterSilence(std::uint64_t number);
  void Hear(wire::CoordinatorReply reply);
  void On(const wire::Accepted& accepted);
  void On(const wire::OutcomePage& page);
  void On(const wire::BatchInfo& info);
  void On(const wire::Refused& refused);
  void NextMessage();
  void NextBatch();
  void TryAgainAfter(Nanos pause);
  void SecondPasses();
  void Vanish();
  void DrainRandomHost();
  void ResumeAllHosts();
  wire::SubmitJobs OtherContent(wire::SubmitJobs message);
  double Rate(Fault fault) const { return is_healed_ ? 0 : parts_.mix[fault]; }
  template <class Action>
  void After(Nanos delay, Action action);

  const Parts parts_;
  const std::size_t index_;
  Dice dice_;
  LinkId link_ = 0;
  Uuid id_;
  std::uint64_t life_ = 0;
  std::uint64_t last_number_ = 0;
  Stage stage_ = Stage::kSubmit;
  std::deque<Batch> batches_;  // the first is in progress
  std::size_t message_ = 0;    // index in that batch
  std::uint64_t after_ = 0;    // outcomes received of that batch
  BatchId reading_;
  std::optional<Outstanding> outstanding_;
  bool is_healed_ = false;
  bool is_gone_for_good_ = false;
};

}  // namespace loopfleet::simulation
