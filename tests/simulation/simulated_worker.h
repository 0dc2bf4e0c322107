#pragma once
// SimulatedWorker: the worker daemon's real protocol with the coordinator over the simulated
// network, and a runner whose jobs take virtual time, fail, hang, or end the daemon.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/agenda.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/fault_mix.h"
#include "tests/simulation/job_pool.h"
#include "tests/simulation/network.h"
#include "tests/simulation/rules/checker.h"
#include "tests/simulation/trace.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/coordinator_link/protocol.h"

namespace loopfleet::simulation {

class SimulatedWorker final : private worker::Protocol::Line {
 public:
  struct Parts {
    Agenda& agenda;
    Trace& trace;
    const FaultMix& mix;
    const JobPool& pool;
    WorkerPort& port;
    Checker& checker;
    std::uint64_t& reports_made;  // by all workers; makes each report unique
  };
  SimulatedWorker(const Parts& parts, std::size_t index, std::uint64_t seed);
  ~SimulatedWorker() override;

  void Start();
  void Heal() { is_healed_ = true; }
  LinkId link() const { return link_; }

 private:
  class Runner;

  bool Send(const wire::WorkerMessage& message) override;
  Status Reconnect() override;

  void Hear(wire::WorkerCommand command);
  void Step();
  void WakeUpAt(Instant when);
  void SecondPasses();
  void Thaw();
  void Die(Nanos until_restart);
  double Rate(Fault fault) const { return is_healed_ ? 0 : parts_.mix[fault]; }
  template <class Action>
  void After(Nanos delay, Action action);  // dropped if this process ends first
  // The report of a lease's run; nullopt: the job ends this worker.
  std::optional<wire::Report> RunOf(const wire::Lease& lease);

  const Parts parts_;
  const std::size_t index_;
  Dice dice_;
  LinkId link_ = 0;
  std::uint64_t life_ = 0;
  wire::WorkerHello hello_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<worker::Protocol> protocol_;
  std::deque<wire::WorkerCommand> unread_;
  Instant frozen_until_{};
  Instant drifted_at_{};
  Instant drifts_until_{};
  std::optional<Instant> wakes_at_;
  std::size_t connections_ = 0;
  bool is_healed_ = false;
};

}  // namespace loopfleet::simulation
